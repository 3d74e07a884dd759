"""docs/guarantees.json has every row and every control as they are now, and docs/guarantees.md is its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from faultline.faults.guarantees import PAGE, RECORD, TIMES, control, merged, page, promised
from faultline.faults.model import Row, RowOutcome
from faultline.faults.rows import CONTROL_ROWS, GROUPS, ROWS
from faultline.faults.steps import LEADING, WORKING, Cancel, Down, Kill, Pause, Restore, Stop
from faultline.faults.times import CAUGHT_UP, FLINK_OUTPUT, GAP, NOTICED, RUNNING, SPARK_OUTPUT
from tests.tree import require_none

NAMES = [*ROWS, *(row.name for rows in CONTROL_ROWS.values() for row in rows)]


def result(name: str, **other: object) -> dict[str, Any]:
    return {"row": name, "outcome": "passed", "seed": 1, "attempts": 1, "times": {}, **other}


def results() -> list[dict[str, Any]]:
    return [result(name) for name in NAMES]


SYNCHRONIZER = GROUPS["The synchronizer"]
RUNS_THE_JOB = ("jobmanager", "taskmanager", WORKING, LEADING)
SHORTER_THAN_THE_TIMEOUT = {"taskmanager-freeze-short"}
"""Flink's heartbeats do not miss a TaskManager that stands still for a second."""
WITHOUT_A_WINDOW_BEFORE = {"synchronizer-kill-large", "restore-while-the-disk-is-full"}
"""They were broken before the first window was committed, and a gap begins with a window."""
MOST_SECONDS = 300


def wrong_figures(row: Row, times: Mapping[str, float]) -> list[str]:
    """List the rules that are broken by the times of a row's run.

    The job may have restarted or not while it could not reach a broker or a store. The job never falls behind under
    many faults, so it may not catch up in any row.
    """
    noticed, running, windows, batch, gap = (
        times.get(name) for name in (NOTICED, RUNNING, FLINK_OUTPUT, SPARK_OUTPUT, GAP)
    )
    stops = row.name not in SHORTER_THAN_THE_TIMEOUT and any(
        isinstance(step, (Cancel, Restore, Down))
        or (isinstance(step, (Kill, Stop, Pause)) and step.service in RUNS_THE_JOB)
        for step in (*row.breaks, *row.heals)
    )
    rules = {
        f"each is known, above 0 and below {MOST_SECONDS}": all(
            name in TIMES and 0 < seconds < MOST_SECONDS for name, seconds in times.items()
        ),
        "Flink notices what stops its job": noticed is not None or not stops,
        "Flink has nothing to notice in the synchronizer": noticed is None or stops or row not in SYNCHRONIZER,
        "a job that Flink misses runs again, later": (
            running is None if noticed is None else running is not None and noticed <= running
        ),
        "new windows come, after what was noticed": windows is not None and (noticed or 0) <= windows,
        # A verdict that cannot be settled: its batches have ended, too.
        "new batches come": (batch is None) == bool(row.unsettled),
        "a gap begins with a window": gap is not None or row.name in WITHOUT_A_WINDOW_BEFORE,
    }
    return [rule for rule, kept in rules.items() if not kept]


def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORD.read_text(encoding="utf-8")))


def test_each_row_is_recorded_with_its_promise_and_plausible_figures() -> None:
    rows = recorded()["rows"]
    assert list(rows) == list(ROWS)
    wrong = [
        f"{name} has changed; run it, and record it again"
        for name, row in ROWS.items()
        if not promised(row).items() <= rows[name].items()
    ]
    wrong += [f"{name}: {rule}" for name, row in ROWS.items() for rule in wrong_figures(row, rows[name]["times"])]
    require_none(wrong)


def test_each_control_is_recorded_as_it_is() -> None:
    assert recorded()["controls"] == {name: control(rows) for name, rows in CONTROL_ROWS.items()}


def test_the_page_is_that_of_the_record() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(recorded())


RIGHT = {NOTICED: 1.2, RUNNING: 18.7, FLINK_OUTPUT: 21.8, SPARK_OUTPUT: 5.7, CAUGHT_UP: 21.8, GAP: 24.1}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("taskmanager-kill", {NOTICED: None, RUNNING: None}),
        ("taskmanager-kill", {RUNNING: None}),
        ("taskmanager-kill", {NOTICED: 19.0}),
        ("taskmanager-kill", {FLINK_OUTPUT: 1.1}),
        ("taskmanager-kill", {FLINK_OUTPUT: None}),
        ("taskmanager-kill", {SPARK_OUTPUT: None}),
        ("taskmanager-kill", {GAP: None}),
        ("taskmanager-kill", {SPARK_OUTPUT: 0.0}),
        ("taskmanager-kill", {CAUGHT_UP: 2180.0}),
        ("taskmanager-kill", {"another time": 1.0}),
        ("synchronizer-kill", {}),
        ("topic-recreated", {NOTICED: None, RUNNING: None}),
    ],
)
def test_figures_that_no_run_has_are_found(name: str, change: dict[str, float | None]) -> None:
    times = {key: seconds for key, seconds in {**RIGHT, **change}.items() if seconds is not None}
    assert len(wrong_figures(ROWS[name], times)) == 1


def test_rows_that_are_missing_are_named() -> None:
    with pytest.raises(ValueError, match=f"not in the results: {NAMES[0]}$"):
        merged(results()[1:], [], {})


def test_a_row_that_failed_once_is_refused() -> None:
    failed = {**results()[0], "outcome": RowOutcome.FAILED.value}
    with pytest.raises(ValueError, match=f"not passed: {NAMES[0]}$"):
        merged([failed, *results()], [], recorded())
    assert merged(results(), [], {})


def soak(seed: int, gap: float, stack: str = "local") -> dict[str, Any]:
    return {"seed": seed, "stack": stack, "minutes": 15.0, "faults": 3, "applied": 3, "wrong": [], "gap": gap}


def test_rows_that_did_not_run_stay_as_they_are() -> None:
    """Figures, seeds, attempts, controls and soaks too; those that ran get new ones."""
    one, other = "broker-kill", "taskmanager-kill"
    named = {one: result(one, attempts=3, times={GAP: 7.0}), other: result(other, attempts=2)}
    first = merged([named.get(name, result(name)) for name in NAMES], [soak(9, 4.0)], {})
    assert f"`{other}` 2, `{one}` 3." in page(first)
    second = merged([result(other, seed=5, attempts=4, times={GAP: 2.5})], [], first)
    assert second["rows"][one] == first["rows"][one]
    assert second["rows"][other]["times"] == {GAP: 2.5}
    text = page(second)
    assert f"{len(ROWS)} rows, seed 1, 5." in text
    assert f"`{other}` 4, `{one}` 3." in text
    assert "| 9 | local | 15 | 3 | 0 | nothing wrong | 4.0 s |" in text
    # Nothing stays when all have run.
    assert merged(results(), [], second)["seeds"] == [1]
    assert merged([], [], second) == second


def test_a_soak_replaces_that_of_its_seed_on_its_stack_only() -> None:
    first = merged(results(), [soak(9, 4.0), soak(8, 4.0)], {})
    second = merged([], [soak(9, 5.0), soak(9, 6.0, "compose, cluster")], first)
    assert [line for line in page(second).splitlines() if "nothing wrong" in line] == [
        "| 8 | local | 15 | 3 | 0 | nothing wrong | 4.0 s |",
        "| 9 | local | 15 | 3 | 0 | nothing wrong | 5.0 s |",
        "| 9 | compose, cluster | 15 | 3 | 0 | nothing wrong | 6.0 s |",
    ]


def test_a_row_whose_promise_has_changed_has_to_run_again() -> None:
    for name, kind in ((NAMES[0], "rows"), (NAMES[-1].partition("-under-")[0], "controls")):
        record = merged(results(), [], {})
        record[kind][name] = {**record[kind][name], "why": "something else"}
        with pytest.raises(ValueError, match=f"not in the results: {name}"):
            merged([], [], record)
