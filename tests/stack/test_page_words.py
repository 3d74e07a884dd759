"""Words and drawings of the page for items that are hard to have from a real stack, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from faultline.page.pictures.browser import Browser
from faultline.player.document import saved
from tests.stack.browser import window
from tests.stack.test_page_replay import CONTRAST

__all__ = ["window"]
pytestmark = pytest.mark.ci

Item = dict[str, Any]
BEGIN = 1_800_000_000.0
OLD, NEW = "a" * 32, "b" * 32
Page = Callable[..., None]


def log(at: float, visits: int = 1000) -> Item:
    ends = {"0": visits}
    return {"kind": "log", "at": BEGIN + at, "visits": ends, "windows": {"0": 20}, "stable": {"0": 15}, "group": {}}


def flink(at: float, *, running: int = 3, position: int = 900, restored: str | None = None, job: str = OLD) -> Item:
    read = {"0": position} if running == 3 else {}
    return {
        "kind": "flink", "at": BEGIN + at, "job": job, "state": "RUNNING", "running": running, "tasks": 3,
        "restarts": 0, "position": read, "restored": restored,
    }  # fmt: skip


def spark(at: float) -> Item:
    return {"kind": "spark", "at": BEGIN + at, "batch": 7, "offsets": {"0": 850}, "planned": None}


def done(at: float, name: str = "chk-1") -> Item:
    named = {"engine": "flink", "job": OLD, "name": name}
    return {"kind": "done", "at": BEGIN + at, **named, "milliseconds": 90, "bytes": 1000}


def services(at: float, words: dict[str, str] | None = None, *, processes: bool = True) -> Item:
    word = "running" if processes else "answers"
    names = ("kafka", "jobmanager", "taskmanager", "spark", "generator")
    states = dict.fromkeys(names, word) | (words or {})
    return {"kind": "services", "at": BEGIN + at, "states": states, "processes": processes}


def unknown(at: float, source: str, text: str) -> Item:
    return {"kind": "unknown", "at": BEGIN + at, "source": source, "text": text}


def held(at: float, *checkpoints: tuple[str, str, int]) -> Item:
    listed = [
        {"path": f"/c/{job}/{name}", "job_id": job, "name": name, "at": 0, "bytes": 1, "offsets": {"0": offset}}
        for job, name, offset in checkpoints
    ]
    return {"kind": "retained", "at": BEGIN + at, "checkpoints": listed}


def verdict(at: float, outcome: str, reason: str, **more: Any) -> Item:
    one = {"pipeline": "spark", "outcome": outcome, "reason": reason, "examples": [], **more}
    return {"kind": "verdict", "at": BEGIN + at, "verdict": {"pipeline": "all", "outcome": outcome, "verdicts": [one]}}


RUNNING = [log(0), flink(0), spark(0), done(0)]


@pytest.fixture
def page(window: Browser, tmp_path: Path) -> Iterator[Page]:
    def show(*items: Item, second: float = 10) -> None:
        file = tmp_path / "page.html"
        end = {"kind": "event", "at": BEGIN + 500, "what": "note", "text": "the end"}
        listed = sorted([*items, end], key=lambda each: float(each["at"]))
        file.write_text(saved({"mode": "replay", "title": "made", "items": listed}), encoding="utf-8")
        window.open(f"{file.as_uri()}#{second}")

    window.size(1280, 900)
    window.prefer()
    window.complaints()
    yield show
    assert window.complaints() == []


def count(window: Browser, what: str) -> int:
    return int(window.run("return document.querySelectorAll(arguments[0]).length", f"{what}:not([display])"))


def test_both_pipelines_read_only_while_all_runs(window: Browser, page: Page) -> None:
    page(*RUNNING, services(0))
    assert window.part("state") == "running"
    assert window.part("story").startswith("Both pipelines read the log")
    for broken in ({"spark": "exited"}, {"kafka": "paused"}, {"taskmanager": "exited"}):
        page(*RUNNING, services(0, broken))
        [(name, word)] = broken.items()
        assert window.part("state") == "fault"
        assert window.part("story") == f"{name}: {word}."


def test_a_page_that_sees_no_processes_says_who_is_silent(window: Browser, page: Page) -> None:
    page(*RUNNING, services(0, {"generator": "visits come in"}, processes=False))
    assert window.part("state") == "running"
    assert window.part("services-note") == "This page cannot see processes; scripts/status.sh can."
    page(*RUNNING, services(0, {"taskmanager": "silent for 6 s"}, processes=False))
    assert (window.part("state"), window.part("story")) == ("fault", "taskmanager: silent for 6 s.")
    silent = dict.fromkeys(("kafka", "jobmanager", "spark"), "silent")
    page(*RUNNING, services(1, {"taskmanager": "not known", **silent}, processes=False))
    assert window.part("state") == "no stack"


def test_what_does_not_answer_is_not_known(window: Browser, page: Page) -> None:
    page(*RUNNING, services(0), unknown(3, "services", "no engine answers"), unknown(3, "flink", "no answer"), second=5)
    assert "services not known" in window.part("services")
    assert window.part("services-note") == "no engine answers"
    assert "Flink job\nnot known" in window.part("facts")
    assert window.part("state") == "fault"
    assert "not known: no answer" in window.part("story")
    assert count(window, "#strips .reads") == 0


def test_a_stack_that_comes_again_starts(window: Browser, page: Page) -> None:
    gone = dict.fromkeys(("kafka", "jobmanager", "taskmanager", "spark", "generator"), "exited")
    some = services(4, gone | {"kafka": "running"})
    page(*RUNNING, services(2, gone), some, unknown(3, "flink", "no job"), second=6)
    assert window.part("state") == "starting"
    page(*RUNNING, services(2, gone), second=3)
    assert window.part("state") == "no stack"


def test_before_the_first_sample_of_the_log_nothing_is_drawn(window: Browser, page: Page) -> None:
    page(spark(0), flink(0), log(5), second=2)
    assert window.run("return getComputedStyle(document.getElementById('strips')).visibility") == "hidden"
    assert window.part("committed") == ""


AGAIN = {
    "kind": "again", "at": BEGIN + 4, "engine": "flink", "job": OLD, "name": "chk-6", "begin": {"0": 880},
    "end": {"0": 950}, "visits": 70, "at_least": True,
}  # fmt: skip


def test_what_is_read_again_goes_back_then_reads_then_has_read(window: Browser, page: Page) -> None:
    items = [
        *RUNNING, flink(3, running=0), AGAIN, flink(6, position=890, restored=f"{OLD}/chk-6"),
        flink(8, position=951, restored=f"{OLD}/chk-6"),
    ]  # fmt: skip
    for second, words in (
        (5, "Flink goes back to chk-6: at least 70 visits"),
        (7, "Flink reads at least 70 visits again, from chk-6"),
        (20, "Flink has read at least 70 visits again, from chk-6, 12 s ago"),
        (308, "Flink has read at least 70 visits again, from chk-6, 5 min ago"),
    ):
        page(*items, second=second)
        assert window.part("again") == words


def test_a_partition_with_nothing_to_read_again_is_not_waited_for(window: Browser, page: Page) -> None:
    both = {**AGAIN, "begin": {"0": 880, "1": 100}, "end": {"0": 950, "1": 100}}
    page(*RUNNING, flink(3, running=0), both, flink(8, position=951, restored=f"{OLD}/chk-6"), second=20)
    assert window.part("again") == "Flink has read at least 70 visits again, from chk-6, 12 s ago"


def test_of_at_least_no_visits_nothing_is_said(window: Browser, page: Page) -> None:
    nothing = {**AGAIN, "end": {"0": 880}, "visits": 0}
    page(*RUNNING, flink(3, running=0), nothing, flink(6, position=890, restored=f"{OLD}/chk-6"), second=7)
    assert window.part("again") == ""
    assert count(window, "#strips rect.again") == 0


def test_before_flink_was_asked_nothing_is_a_fault(window: Browser, page: Page) -> None:
    page(log(0), done(-20), spark(0), services(0), flink(5), second=2)
    assert window.part("state") == "starting"
    page(log(0), done(-20), spark(0), services(0), flink(5), second=6)
    assert window.part("state") == "running"


def test_the_filled_diamond_is_of_the_job_that_runs(window: Browser, page: Page) -> None:
    listed = held(3, (OLD, "chk-6", 700), (OLD, "chk-7", 800), (NEW, "chk-7", 900))
    # A recorded run shows all offsets: from 600 on.
    first = [log(0), flink(0, position=600)]
    page(*first, flink(2, job=NEW, restored=f"{OLD}/chk-7", position=950), listed, second=4)
    shapes = window.run(
        "return [...document.querySelectorAll('#strips path.chk:not([display])')].map((each) =>"
        " [each.getAttribute('class'), each.textContent.split(' ')[0]])"
    )
    assert shapes == [["chk", "chk-6"], ["chk restored", "chk-7"], ["chk newest", "chk-7"]]
    assert count(window, "#strips .ring") == 1
    older = held(3, (OLD, "chk-6", 700), (OLD, "chk-7", 800))
    page(*first, flink(2, job=NEW, restored=f"{OLD}/chk-6", position=750), older, second=4)
    assert count(window, "#strips .chk.newest.restored") == 1


def test_an_unknown_verdict_has_its_reason_and_grows_old(window: Browser, page: Page) -> None:
    page(*RUNNING, verdict(2, "unknown", "2 windows are open", lost=2), log(4, 1025), second=3)
    assert window.part("verdict").splitlines()[0] == "UNKNOWN"
    assert "spark unknown: 2 windows are open" in window.part("verdict")
    assert "judged 08:00:02 UTC" in window.part("verdict")
    assert count(window, "#verdict.old") == 0
    page(*RUNNING, verdict(2, "violated", "", lost=1200), log(4, 1025), second=5)
    assert "1,200 lost" in window.part("verdict")
    assert "25 visits have come since" in window.part("verdict")
    assert count(window, "#verdict.old") == 1
    assert window.run(CONTRAST) == []


def test_the_window_of_a_running_stack_stands_still_until_the_end_is_at_its_edge(window: Browser, page: Page) -> None:
    page(*[log(second, 1000 + 10 * second) for second in range(200)])
    moved = window.run(
        "const view = new Faultline.window(Faultline.page.store, 'visits', '0', false); const found = [];"
        f"for (let second = 100; second < 190; second += 1) {{ const end = 1000 + 10 * second;"
        f"  const [low, high] = view.range(end, end - 40, {BEGIN} + second, false);"
        "  found.push([low, (end - low) / (high - low)]); } return found"
    )
    places = [place for _, place in moved]
    lows = [low for low, _ in moved]
    assert 2 <= len(set(lows)) <= 6
    assert all(one <= other for one, other in pairwise(lows))
    assert 0.5 < min(places) < max(places) <= 0.951


def test_a_row_that_failed_has_its_reason(window: Browser, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "failed.html"
    ended = {"outcome": "failed", "reason": "the job did not come back"}
    file.write_text(saved({"mode": "replay", "title": "row", "items": RUNNING, **ended}), encoding="utf-8")
    window.open(file.as_uri() + "#1")
    assert window.part("outcome") == "✗ FAILED: the job did not come back"
