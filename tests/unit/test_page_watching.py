"""Contents of a live page over time: a stack that is made again, a page that is too slow, a source that is silent."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from faultline.faults import steps
from faultline.faults.steps import Line, Step
from faultline.messages import say
from faultline.page import actions, following, watching
from faultline.page.actions import Action, Judge, Refused, Runner
from faultline.page.history import History
from faultline.page.watching import WAITING, Watching
from faultline.player.items import Item, Items
from faultline.probes.reached import answers_http, broker_words, spark_pages, taskmanager_words
from faultline.probes.watch import Sampler
from faultline.settings import Settings
from faultline.stack.backend import ACTS
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack, open_stack
from faultline.waiting import wait_until


def log(end: int, at: float = 1.0) -> dict[str, Any]:
    return {"at": at, "visits": {0: end}, "windows": {0: 1}, "stable": {0: 1}, "group": {}}


def job(at: float, running: int = 3, position: int = 5, name: str = "a") -> dict[str, Any]:
    return {
        "at": at, "job_id": name, "state": "RUNNING", "running_tasks": running, "tasks": 3, "restarts": 0,
        "position": {"0": position} if running == 3 else {}, "restored_from": None, "checkpoints": [],
    }  # fmt: skip


def texts(items: list[Item]) -> list[str]:
    return [item["text"] for item in items if item["kind"] == "event"]


def messages(queue: asyncio.Queue[str]) -> Iterator[tuple[str, list[Item]]]:
    while not queue.empty():
        event, _, data = queue.get_nowait().partition("\n")
        yield event.partition(": ")[2], json.loads(data.partition(": ")[2])["items"]


def test_pages_forget_a_stack_whose_log_was_made_again() -> None:
    async def run() -> list[tuple[str, list[Item]]]:
        watched = Watching({}, lambda _: None)
        watched.begin()
        with watched.page() as queue:
            for sample in (log(100), log(5, 2.0), log(6, 3.0)):
                watched.take("kafka", sample)
            await asyncio.sleep(0.05)
            watched.end()
            return list(messages(queue))

    (first, _), (second, old), (third, new), (fourth, more) = asyncio.run(run())
    assert [first, second, third, fourth] == ["all", "more", "all", "more"]
    assert [items[0]["visits"]["0"] for items in (old, new, more)] == [100, 5, 6]


def test_a_page_that_is_too_far_behind_is_cut_off() -> None:
    async def run() -> tuple[bool, bool]:
        watched = Watching({}, lambda _: None)
        watched._loop = asyncio.get_running_loop()
        with watched.page() as slow:
            before = watched.has(slow)
            for number in range(WAITING + 1):
                watched.add([{"kind": "event", "at": number, "what": "note", "text": "x"}])
            await asyncio.sleep(0.05)
            return before, watched.has(slow)

    assert asyncio.run(run()) == (True, False)


def test_a_source_that_leaves_a_question_open_is_shown_while_others_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine one that answers is late, too.
    monkeypatch.setattr(watching, "SILENT_SECONDS", 2.0)
    answer = threading.Event()
    count = iter(range(10**6))

    def frozen() -> dict[str, Any]:
        answer.wait(60)
        return log(1)

    def busy() -> dict[str, Any]:
        return {"states": {"kafka": str(next(count))}}

    def silent(items: list[Item]) -> list[str]:
        return [item["text"] for item in items if item["kind"] == "unknown" and item["source"] == "kafka"]

    async def run() -> list[Item]:
        watched = Watching({"kafka": lambda: frozen, "services": lambda: busy}, lambda _: None)
        watched.begin()
        with watched.page():
            for _ in range(300):
                await asyncio.sleep(0.1)
                found = watched.items()
                if silent(found) and found[-1]["kind"] == "services":
                    break
        answer.set()
        await asyncio.to_thread(watched.end)
        return found

    found = asyncio.run(run())
    assert silent(found) == ["no answer for more than 2 s"]
    # After it another one has answered.
    assert found[-1]["kind"] == "services"


def test_a_sampler_outlives_any_error_and_what_it_cannot_use() -> None:
    answers: Iterator[Any] = iter([RuntimeError("broken"), {"visits": 3}, log(7)])

    def sample() -> dict[str, Any]:
        found = next(answers, None)
        if isinstance(found, Exception):
            raise found
        return dict(found or log(8))

    async def run() -> list[Item]:
        watched = Watching({"kafka": lambda: sample}, lambda _: None)
        watched.begin()
        with watched.page():
            for _ in range(80):
                await asyncio.sleep(0.1)
                if any(item["kind"] == "log" for item in watched.items()):
                    break
            watched.end()
            return watched.items()

    found = asyncio.run(run())
    assert [item["kind"] for item in found][:3] == ["unknown", "unknown", "log"]
    assert found[0]["text"] == "broken"


def test_a_sampler_is_made_again_for_another_stack() -> None:
    up, made = ["one"], []

    def make() -> Any:
        made.append(up[0])
        return lambda: {"of": made[-1]}

    sampler = Sampler(make, lambda: up[0])
    assert [sampler()["of"], sampler()["of"]] == ["one", "one"]
    up[0] = "two"
    assert sampler()["of"] == "two"
    assert made == ["one", "two"]


def test_who_comes_back_while_the_last_page_leaves_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LINGER_SECONDS", 0.0)
    watched = Watching({}, lambda _: None)
    with watched.page():
        assert watched.is_watched()
    assert not watched.is_watched()
    with watched.page():
        assert watched.is_watched()


def test_what_is_kept_begins_with_the_last_of_each_kind() -> None:
    history = History(most=3)
    services = {"kind": "services", "at": 1.0, "states": {}}
    logs = [{"kind": "log", "at": 2.0 + number, "visits": {}} for number in range(5)]
    history.add([services, *logs])
    assert history.all() == [services, logs[1], *logs[2:]]
    history.clear()
    assert history.all() == []


def test_a_silent_jobmanager_does_not_count_as_a_crash_of_the_job() -> None:
    made = Items()
    made.take("flink", job(1.0))
    for at in (2.0, 9.0, 16.0):
        made.take("flink", {"at": at, "unknown": "no answer"})
    assert texts(made.take("flink", job(23.0))) == ["the state of the Flink job is known again, after 21.0 s"]


def test_a_heartbeat_says_how_long_a_taskmanager_is_silent() -> None:
    def seen(*listed: tuple[str, float]) -> dict[str, Any]:
        return {"taskmanagers": [{"id": name, "timeSinceLastHeartbeat": at * 1000} for name, at in listed]}

    one, two = "taskmanager_20260101T000000.0", "taskmanager-2_20260101T000000.0"
    assert taskmanager_words(seen((one, 99.5)), 1, 100.0) == {"taskmanager": "answers"}
    assert taskmanager_words(seen((one, 94.0)), 1, 100.0) == {"taskmanager": "silent for 6 s"}
    assert taskmanager_words(seen(), 1, 100.0) == {"taskmanager": "not registered"}
    assert taskmanager_words(None, 1, 100.0) == {"taskmanager": "not known"}
    found = {"taskmanager": "not registered", "taskmanager-2": "answers"}
    assert taskmanager_words(seen((two, 99.9)), 2, 100.0) == found
    # The killed one is listed until it is declared dead.
    again = "taskmanager_20260101T000500.0"
    assert taskmanager_words(seen((one, 93.0), (again, 99.9)), 1, 100.0) == {"taskmanager": "answers"}


def test_each_broker_answers_for_itself() -> None:
    assert broker_words(range(1, 2), {1: None}) == {"kafka": "answers"}
    assert broker_words(range(1, 4), {1: None, 3: None}) == {
        "kafka": "answers", "kafka-2": "silent", "kafka-3": "answers",
    }  # fmt: skip


def test_the_pages_of_sparks_cluster_are_asked_where_there_is_one() -> None:
    assert spark_pages(Settings({})) == {"spark": ("127.0.0.1", 4040)}
    assert spark_pages(Settings({"STACK_SPARK_WORKERS": "2", "STACK_JOBMANAGER_HOST": "jobmanager"})) == {
        "spark": ("spark", 4040), "spark-master": ("spark-master", 8090),
        "spark-worker": ("spark-worker", 8091), "spark-worker-2": ("spark-worker-2", 8092),
    }  # fmt: skip


def test_any_status_is_an_answer_and_where_it_leads_is_not_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /slow\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert answers_http("127.0.0.1", port)
        thread.join()
        # It accepts, as a frozen one does, and says nothing.
        assert not answers_http("127.0.0.1", port)
    assert not answers_http("127.0.0.1", port)


def test_a_program_that_does_not_end_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    script = 'trap \'\' TERM; sleep 600 & echo "{\\"child\\": $!}"; wait; sleep 600'
    lines: list[dict[str, Any]] = []
    begin = time.monotonic()
    following._END_SECONDS, before = 0.5, following._END_SECONDS
    try:
        following.run(["bash", "-c", script], tmp_path, lambda: not lines, lines.append)
    finally:
        following._END_SECONDS = before
    assert time.monotonic() - begin < 20
    assert (tmp_path / following.STOP).exists()
    wait_until(lambda: not alive(lines[0]["child"]), "its child to end", seconds=10)


def alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False


def runner(monkeypatch: pytest.MonkeyPatch, *wanted: str | Step) -> tuple[Runner, list[Item]]:
    said: list[Item] = []
    lines = tuple(Line(step) if isinstance(step, str) else step for step in wanted)
    monkeypatch.setattr(actions, "actions", lambda: {"act": Action("act", "an action", "judge", lines)})
    return Runner(said.extend, str), said


def test_the_end_of_the_page_waits_for_an_action(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, said = runner(monkeypatch, "sleep 1", f"touch {tmp_path / 'whole'}")
    run.start("act", None)
    run.end(lambda: False)
    assert (tmp_path / "whole").exists()
    assert texts(said)[-1] == "done: an action"
    assert "'an action' still runs" in capsys.readouterr().err


def test_an_action_has_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run, _ = runner(monkeypatch, f"ps -o sid= $$ > {tmp_path / 'session'}")
    run.start("act", None)
    run.end(lambda: False)
    assert int((tmp_path / "session").read_text(encoding="ascii")) != os.getsid(0)


def test_the_next_action_can_start_when_the_end_of_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[str] = []
    run, said = runner(monkeypatch, "true")

    def tell(items: list[Item]) -> None:
        said.extend(items)
        if items[0]["what"] == "done" and not again:
            again.append("started")
            run.start("act", None)

    run._tell = tell
    run.start("act", None)
    wait_until(lambda: texts(said).count("done: an action") == 2, "both to end", seconds=20)


def test_an_act_without_an_end_in_sight_says_why_it_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_SHELL_SECONDS", 0.3)
    run, said = runner(monkeypatch, "sleep 60")
    run.start("act", None)
    run.end(lambda: False)
    assert texts(said)[1:] == ["exit code 2: not done within 0.3 s: sleep 60", "failed: an action"]


def test_a_verdict_that_cannot_be_given_is_unknown_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Stack, *, as_is: bool) -> NoReturn:
        say("verdict.sh: no broker answers")
        raise StackError("", 2 + as_is)

    monkeypatch.setattr(Stack, "verdict", fails)
    run, said = runner(monkeypatch, Judge(as_is=True))
    run.start("act", None)
    run.end(lambda: False)
    assert texts(said) == ["scripts/verdict.sh all --json --as-is", "done: an action"]
    [item] = [item for item in said if item["kind"] == "verdict"]
    assert (item["as_is"], item["verdict"]["outcome"]) == (True, "unknown")
    assert item["verdict"]["reason"] == "verdict.sh: no broker answers"


def test_an_action_gets_the_checkpoint_under_its_name_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[str] = []
    monkeypatch.setattr(Stack, "restore", lambda _, path, **__: restored.append(path))
    said: list[Item] = []
    run = Runner(said.extend, lambda path: path.replace("/inside", "/a home"))
    with pytest.raises(Refused, match="not retained"):
        run.start("restore", None)
    run.start("restore", "/inside/chk-1")
    run.end(lambda: False)
    assert restored == ["/a home/chk-1"]
    assert texts(said) == ["scripts/flink_restore.sh '/a home/chk-1'", "done: restore from"]


@pytest.mark.parametrize("profile", ["", "cluster"])
def test_each_button_acts_on_what_the_stack_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str) -> None:
    monkeypatch.setenv("STACK_HOME", str(tmp_path))
    monkeypatch.setenv("STACK_PROFILE", profile)
    stack = open_stack()
    has, families = {row.name for row in stack.services}, {row.family for row in stack.services}
    found = actions.actions()
    for action in found.values():
        for step in action.steps:
            script, service, *_ = [*step.line.split(), ""]
            if script in {f"scripts/{act}.sh" for act in ACTS}:
                assert service in has
                assert action.group == stack.service(service).family
    assert {action.group for action in found.values()} <= families | {"Flink job", "verdict", "begin again"}
    assert "broker-kill" in found
    assert ("broker-2-kill" in found) == bool(profile)
    # It deletes a file, and the profile has its checkpoints in an object store.
    assert ("commit-deleted" in found) == (not profile)
    assert all(f"{name}-repair" in found for name, action in found.items() if action.kind == "break")
