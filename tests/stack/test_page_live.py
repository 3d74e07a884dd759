"""The live page on a real stack, in a real browser: what it shows, its buttons, and what it does when things go."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from faultline.page.pictures.browser import Browser
from faultline.page.watching import LINGER_SECONDS
from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.browser import window
from tests.stack.running_stack import RunningStack

__all__ = ["window"]
pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

WAIT_SECONDS = 240.0
UNDISTURBED = ("job_id", "state", "restarts", "checkpoints_failed")


@dataclass
class Shown:
    """The page in a browser."""

    window: Browser
    address: str

    def open(self) -> None:
        self.window.open(self.address)

    def text(self, place: str) -> str:
        return self.window.part(place)

    def items(self, kind: str) -> list[dict[str, Any]]:
        return list(self.window.run("return Faultline.page.store.of(arguments[0])", kind))

    def log_ends(self) -> list[int]:
        found = self.window.run("return [...document.querySelectorAll('#strips .end')].map((each) => each.textContent)")
        return [int(text.replace(",", "")) for text in found]

    def press(self, action: str) -> None:
        self.window.run("document.getElementById('actions').open = true")
        wait_until(
            lambda: not self.window.run("return document.querySelector('#actions [data-action]').disabled"),
            "no other action to run", seconds=WAIT_SECONDS, explain=self.explain,
        )  # fmt: skip
        self.window.run("document.querySelector(`#actions [data-action='${arguments[0]}']`).click()", action)

    def wait(self, place: str, words: str, seconds: float = WAIT_SECONDS) -> None:
        wait_until(lambda: words in self.text(place), f"'{words}' in {place}", seconds=seconds, explain=self.explain)

    def run(self, action: str, label: str) -> None:
        """Press a button, and wait until its action is done."""
        before = len(self.ends(label))
        self.press(action)
        wait_until(
            lambda: len(self.ends(label)) > before,
            f"the end of {label}",
            seconds=WAIT_SECONDS * 2,
            explain=self.explain,
        )
        assert self.ends(label)[-1] == f"done: {label}", self.explain()

    def ends(self, label: str) -> list[str]:
        return [item["text"] for item in self.items("event") if item["what"] == "done" and item["text"].endswith(label)]

    def explain(self) -> str:
        return "\n".join([self.text("state"), self.text("story"), json.dumps(self.items("event")[-8:])])


@contextlib.contextmanager
def served(stack: RunningStack, window: Browser) -> Iterator[Shown]:
    """The page with buttons of a stack."""
    command = [str(ROOT / "scripts" / "page.sh")]
    with subprocess.Popen(command, env=stack.environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert "#token=" in address
            window.size(1280, 1000)
            window.prefer()
            yield Shown(window, address)
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture(
    scope="module",
    params=[pytest.param("local"), pytest.param("compose", marks=pytest.mark.compose)],
)
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack that is still down. Its checkpoints are far enough apart for a kill between two of them."""
    settings = {"FLINK_CHECKPOINT_INTERVAL_MS": "10000"}
    with RunningStack(tmp_path_factory.mktemp("page"), request.param, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def page(stack: RunningStack, window: Browser) -> Iterator[Shown]:
    """Served before the stack is up."""
    with served(stack, window) as shown:
        yield shown


def test_without_a_stack_it_says_so_and_goes_on_by_itself(stack: RunningStack, page: Shown) -> None:
    page.open()
    page.wait("state", "no stack", 30)
    assert "scripts/up.sh" in page.text("story")
    page.window.run(
        "window.states = []; setInterval(() => {"
        "  const word = document.getElementById('state').textContent;"
        "  if (window.states[window.states.length - 1] !== word) window.states.push(word); }, 50)"
    )
    words = stack.script("up.sh").stderr
    assert f"live page http://127.0.0.1:{stack.environment['STACK_PAGE_PORT']}" in words
    page.wait("state", "running")
    states = page.window.run("return window.states")
    places = [states.index(word) for word in ("no stack", "starting", "running")]
    assert places == sorted(places), states
    assert "fault" not in states[: places[-1]], states


def test_offsets_move(page: Shown) -> None:
    wait_until(lambda: len(page.log_ends()) == 2, "two partitions", seconds=WAIT_SECONDS, explain=page.explain)
    before = sum(page.log_ends())
    wait_until(lambda: sum(page.log_ends()) > before + 20, "offsets to move", seconds=WAIT_SECONDS)
    page.wait("done", "chk-")
    page.wait("done", "batch ")


def test_a_checkpoint_opens_with_the_words_of_the_inspector(page: Shown) -> None:
    def opens() -> bool:
        # The job deletes old ones, and the inspector reads new ones, meanwhile.
        page.window.run("document.querySelectorAll('#done button')[1].click()")
        wait_until(lambda: "opens it" not in page.text("text"), "the inspector", seconds=90, explain=page.explain)
        found = "Restored now, it reads on from" in page.text("text")
        page.window.run("document.getElementById('close').click()")
        return found

    many = "return document.querySelectorAll('#done button').length"
    wait_until(lambda: page.window.run(many) > 1, "two checkpoints", seconds=WAIT_SECONDS, explain=page.explain)
    wait_until(opens, "the inspector's words", seconds=WAIT_SECONDS, explain=lambda: page.text("text"))


def test_windows_are_counted_as_they_are_committed(page: Shown) -> None:
    page.wait("committed", "read here")
    before = page.items("windows")[-1]["total"]
    wait_until(
        lambda: page.items("windows")[-1]["total"] > before, "more windows", seconds=WAIT_SECONDS, explain=page.explain
    )


def test_the_page_beside_the_services_only_shows(stack: RunningStack, page: Shown) -> None:
    other = Shown(page.window, f"http://127.0.0.1:{stack.environment['STACK_PAGE_PORT']}/")
    other.open()
    other.wait("state", "running")
    assert "This page is read-only" in other.text("live")
    assert page.window.run("return document.querySelectorAll('[data-action]').length") == 0
    other.wait("services", "generator visits come in")
    for name in ("kafka", "jobmanager", "taskmanager", "spark"):
        assert f"{name} answers" in other.text("services")
    stack.script("pause.sh", "spark")
    other.wait("services", "spark silent")
    other.wait("state", "fault")
    stack.script("resume.sh", "spark")
    other.wait("state", "running")
    page.open()


def test_the_first_position_after_a_pause_is_of_the_present(page: Shown) -> None:
    page.window.open("about:blank")
    time.sleep(LINGER_SECONDS)
    # Now nobody asks the JobManager any more.
    pause = 30
    time.sleep(pause)
    opened = time.time()
    page.open()

    def since(kind: str) -> list[dict[str, Any]]:
        return [item for item in page.items(kind) if item["at"] > opened and item.get("position", True)]

    wait_until(lambda: since("flink") and since("log"), "a position", seconds=WAIT_SECONDS, explain=page.explain)
    before = [item for item in page.items("log") if item["at"] < opened][-1]
    end, earlier = sum(since("log")[0]["visits"].values()), sum(before["visits"].values())
    assert end > earlier
    assert end - sum(since("flink")[0]["position"].values()) < (end - earlier) / 2


def test_a_lesson_goes_step_by_step_and_has_its_buttons(page: Shown) -> None:
    step = "document.querySelector('#lessons .step').textContent"
    first = page.window.run(f"document.getElementById('lessons').open = true; return {step}")
    for _ in range(2):
        page.window.run("document.querySelector('#lessons .turn .next').click()")
    assert page.window.run(f"return {step}") != first
    button = page.window.run("return document.querySelector('#lessons [data-action]').innerText")
    assert "scripts/kill.sh taskmanager" in button
    page.window.run("document.getElementById('lessons').open = false")


def wait_for_more_visits(page: Shown) -> None:
    def read_up_to() -> int:
        return sum(page.items("flink")[-1]["position"].values())

    last = read_up_to()
    wait_until(lambda: read_up_to() > last, "more visits", seconds=WAIT_SECONDS, explain=page.explain)


def completed(page: Shown) -> int:
    return sum(item["engine"] == "flink" for item in page.items("done"))


def killed_and_repaired(stack: RunningStack, page: Shown) -> dict[str, Any]:
    """Kill the TaskManager by a button between two checkpoints, and repair it; returns what is read again."""
    page.wait("state", "running")
    before, known = len(page.items("again")), completed(page)
    wait_until(lambda: completed(page) > known, "a checkpoint", seconds=WAIT_SECONDS, explain=page.explain)
    # The JobManager's next answer may be older than the checkpoint; the one after it is not.
    for _ in range(2):
        wait_for_more_visits(page)
    page.press("taskmanager-kill")
    page.wait("state", "fault")
    page.wait("services", "taskmanager exited")
    page.run("taskmanager-kill-repair", "repair: taskmanager kill")
    wait_until(
        lambda: len(page.items("again")) > before, "what is read again", seconds=WAIT_SECONDS, explain=page.explain
    )
    again = page.items("again")[-1]
    many = f"{again['visits']:,} visit{'' if again['visits'] == 1 else 's'}"
    page.wait("again", f"Flink has read at least {many} again, from {again['name']}, ")
    page.wait("state", "running")
    return again


def test_a_kill_and_its_repair_end_in_a_replay_with_the_inspectors_number(stack: RunningStack, page: Shown) -> None:
    again = killed_and_repaired(stack, page)
    held = [each for item in page.items("retained") for each in item["checkpoints"] if each["name"] == again["name"]]
    command = ["exec.sh", "jobmanager", "python", "-m", "faultline.inspector.flink", "offsets", held[-1]["path"]]
    assert again["begin"] == json.loads(stack.script(*command).stdout)
    assert again["visits"] == sum(again["end"].values()) - sum(again["begin"].values()) > 0
    marked = page.window.run("return document.querySelectorAll('#strips rect.again.flink:not([display])').length")
    assert marked == sum(end > again["begin"][partition] for partition, end in again["end"].items())


def test_a_running_stack_can_be_judged(page: Shown) -> None:
    page.run("judge-now", "judge as it is now")
    page.wait("verdict", "HOLDS")
    page.wait("verdict", "while the stack ran; ")
    assert "have come since" in page.text("verdict")


def test_open_windows_make_the_verdict_unknown(page: Shown) -> None:
    page.run("judge-open", "stop, and judge with open windows")
    page.wait("verdict", "UNKNOWN")
    assert "open" in page.text("verdict")


def test_the_settled_verdict_holds(page: Shown) -> None:
    page.run("judge", "settle, and judge")
    page.wait("verdict", "HOLDS")


def test_what_was_seen_is_a_file_that_plays(stack: RunningStack, page: Shown, tmp_path: Path) -> None:
    port = int(stack.environment["STACK_PAGE_BUTTONS_PORT"])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/saved")
    with connection.getresponse() as answer:
        (tmp_path / "saved.html").write_bytes(answer.read())
    connection.close()
    saved = Shown(page.window, (tmp_path / "saved.html").as_uri() + "#1000000")
    saved.open()
    assert saved.text("verdict").startswith("HOLDS")
    assert "visits again, from chk-" in saved.text("again")
    page.window.press("\ue011")
    assert saved.text("verdict") == ""


def test_a_server_that_goes_disturbs_nothing_and_comes_back(stack: RunningStack, page: Shown) -> None:
    beside = Shown(page.window, f"http://127.0.0.1:{stack.environment['STACK_PAGE_PORT']}/")
    beside.open()
    beside.wait("state", "running")
    stack.script("kill.sh", "page")
    beside.wait("state", "no server", 30)
    stack.wait_for_checkpoints(1)
    stack.script("start.sh", "page")
    beside.wait("state", "running", 60)


def test_a_flood_and_connections_that_stay_open_disturb_nothing(stack: RunningStack, page: Shown) -> None:
    port, before, states = int(stack.environment["STACK_PAGE_PORT"]), stack.job(), stack.states()
    with contextlib.ExitStack() as held:
        for _ in range(80):
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
        for _ in range(2_000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as flood:
                flood.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        after = stack.wait_for_checkpoints(2)
        assert stack.states() == states
    assert [after[name] for name in UNDISTURBED] == [before[name] for name in UNDISTURBED]
    beside = Shown(page.window, f"http://127.0.0.1:{port}/")
    wait_until(lambda: answers(beside.address), "the page to answer", seconds=60)
    beside.open()
    beside.wait("state", "running", 60)


def answers(address: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=10) as answer:
        return bool(answer.status == HTTPStatus.OK)
    return False


def test_an_older_checkpoint_ends_in_a_verdict_with_the_records(stack: RunningStack, page: Shown) -> None:
    page.open()
    page.wait("state", "running")
    page.run("generator-start", "start the generator")
    stack.wait_for_checkpoints(6)
    chosen = "document.querySelector('.choose select')"
    options = f"return {chosen}.options.length"
    wait_until(lambda: page.window.run(options) > 5, "six checkpoints", seconds=WAIT_SECONDS, explain=page.explain)
    page.run("job-cancel", "job cancel")
    page.window.run(f"{chosen}.value = {chosen}.options[4].value; {chosen}.dispatchEvent(new Event('change'))")
    shown = page.window.run("return document.querySelector(`#actions [data-action='restore'] code`).textContent")
    assert shown == "scripts/flink_restore.sh " + str(
        stack.home / "checkpoints" / "flink" / page.window.run(f"return {chosen}.value")
    )
    page.run("restore", "restore from")
    page.wait("state", "running")
    page.run("judge", "settle, and judge")
    page.wait("verdict", "VIOLATED", WAIT_SECONDS * 3)
    assert "duplicated" in page.text("verdict")
    assert page.window.run("return document.querySelectorAll('#verdict details li').length") > 0


def test_a_reset_makes_a_clean_stack_and_the_page_begins_again(page: Shown) -> None:
    page.open()
    page.wait("state", "running")
    page.press("reset")
    wait_until(
        lambda: page.text("said").startswith(("done: remove", "failed: remove")), "the reset", seconds=WAIT_SECONDS * 3,
        explain=page.explain,
    )  # fmt: skip
    assert page.text("said").startswith("done:"), page.explain()
    page.wait("state", "running")
    assert page.text("verdict") == page.text("again") == ""
    assert page.items("again") == page.items("verdict") == []
