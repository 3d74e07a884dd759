"""docs/guarantees.md has every row and every control, as they are now."""

from __future__ import annotations

import re
from typing import Any

import pytest

from faultline.faults.guarantees import PAGE, control, page, promised
from faultline.faults.model import Outcome, Row
from faultline.faults.rows import CONTROL_ROWS, GROUPS, ROWS
from faultline.faults.steps import LEADING, WORKING, Cancel, Down, Kill, Pause, Restore, Stop
from faultline.faults.times import GAP
from tests.tree import require_none

NAMES = [*ROWS, *(row.name for rows in CONTROL_ROWS.values() for row in rows)]


def result(name: str, **other: object) -> dict[str, Any]:
    return {"row": name, "outcome": "passed", "seed": 1, "attempts": 1, "times": {}, **other}


def results() -> list[dict[str, Any]]:
    return [result(name) for name in NAMES]


def line_of(text: str, name: str) -> str:
    [line] = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    return line


SYNCHRONIZER = GROUPS["The synchronizer"]
RUNS_THE_JOB = ("jobmanager", "taskmanager", WORKING, LEADING)
SHORTER_THAN_THE_TIMEOUT = {"taskmanager-freeze-short"}
"""Flink's heartbeats do not miss a TaskManager that stands still for a second."""
WITHOUT_A_WINDOW_BEFORE = {"synchronizer-kill-large", "restore-while-the-disk-is-full"}
"""They were broken before the first window was committed, and a gap begins with a window."""
MOST_SECONDS = 300


def wrong_figures(row: Row, cells: list[str]) -> list[str]:
    """List the rules that are broken by the six cells that come from the run of a row.

    The job may have restarted or not while it could not reach a broker or a store. The job never falls behind under
    many faults, so `caught up` may be empty in any row.
    """
    noticed, again, windows, batch, _, gap = figures = [
        float(cell) if re.fullmatch(r"\d+\.\d", cell) else None for cell in cells
    ]
    stops = row.name not in SHORTER_THAN_THE_TIMEOUT and any(
        isinstance(step, (Cancel, Restore, Down))
        or (isinstance(step, (Kill, Stop, Pause)) and step.service in RUNS_THE_JOB)
        for step in (*row.breaks, *row.heals)
    )
    rules = {
        "each is a number with one decimal, or empty": all(
            cell == "" or figure is not None for cell, figure in zip(cells, figures, strict=True)
        ),
        f"each is above 0 and below {MOST_SECONDS}": all(
            0 < figure < MOST_SECONDS for figure in figures if figure is not None
        ),
        "Flink notices what stops its job": noticed is not None or not stops,
        "Flink has nothing to notice in the synchronizer": noticed is None or stops or row not in SYNCHRONIZER,
        "a job that Flink misses runs again, later": (
            again is None if noticed is None else again is not None and noticed <= again
        ),
        "new windows come, after what was noticed": windows is not None and (noticed or 0) <= windows,
        # A verdict that cannot be settled: its batches have ended, too.
        "new batches come": (batch is None) == bool(row.unsettled),
        "a gap begins with a window": gap is not None or row.name in WITHOUT_A_WINDOW_BEFORE,
    }
    return [rule for rule, kept in rules.items() if not kept]


def test_the_page_has_each_row_with_its_promise_and_plausible_figures() -> None:
    wrong = []
    for name, row in ROWS.items():
        line = line_of(PAGE.read_text(encoding="utf-8"), name)
        if not line.startswith(promised(row)):
            wrong.append(f"{name} has changed; run it, and write the page again")
            continue
        cells = [cell.strip() for cell in line.removeprefix(promised(row)).split("|")[:-1]]
        wrong += [f"{name}: {rule}: {cells}" for rule in wrong_figures(row, cells)]
    require_none(wrong)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("taskmanager-kill", "|||21.8|5.7|21.8|24.1"),
        ("taskmanager-kill", "|1.2||21.8|5.7|21.8|24.1"),
        ("taskmanager-kill", "|19.0|18.7|21.8|5.7|21.8|24.1"),
        ("taskmanager-kill", "|1.2|18.7|1.1|5.7|21.8|24.1"),
        ("taskmanager-kill", "|1.2|18.7||5.7|21.8|24.1"),
        ("taskmanager-kill", "|1.2|18.7|21.8||21.8|24.1"),
        ("taskmanager-kill", "|1.2|18.7|21.8|5.7|21.8|"),
        ("taskmanager-kill", "|1.2|18.7|21.8|5.7|21|24.1"),
        ("taskmanager-kill", "|1.2|18.7|21.8|5.7|.|24.1"),
        ("taskmanager-kill", "|1.2|18.7|21.8|0.0|21.8|24.1"),
        ("taskmanager-kill", "|1.2|18.7|21.8|5.7|2180.0|24.1"),
        ("synchronizer-kill", "|1.2|18.7|21.8|5.7|21.8|24.1"),
        ("topic-recreated", "|||11.2|5.7||11.5"),
    ],
)
def test_figures_that_no_run_has_are_found(name: str, cells: str) -> None:
    assert len(wrong_figures(ROWS[name], cells.split("|")[1:])) == 1


def test_the_page_has_each_control_and_nothing_else() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert {control(name, rows) for name, rows in CONTROL_ROWS.items()} <= set(lines)
    assert len([line for line in lines if line.startswith("| `")]) == len(ROWS) + len(CONTROL_ROWS)
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")][: len(GROUPS)] == list(GROUPS)


def test_rows_that_are_missing_make_no_page() -> None:
    with pytest.raises(ValueError, match=f"not in the results: {NAMES[0]}$"):
        page(results()[1:], [])


def test_a_row_that_failed_once_makes_no_page() -> None:
    failed = {**results()[0], "outcome": Outcome.FAILED.value}
    with pytest.raises(ValueError, match=f"not passed: {NAMES[0]}$"):
        page([failed, *results()], [])
    assert page(results(), [])


def test_rows_that_did_not_run_keep_their_lines() -> None:
    """Figures, seeds, attempts, controls and soaks too; those that ran get new ones."""
    one, other = "broker-kill", "taskmanager-kill"
    soak = {"seed": 9, "stack": "local", "minutes": 15.0, "faults": 3, "applied": 3, "wrong": [], "gap": 4.0}
    named = {one: result(one, attempts=3, times={GAP: 7.0}), other: result(other, attempts=2)}
    first = page([named.get(name, result(name)) for name in NAMES], [soak])
    assert f"`{other}` 2, `{one}` 3." in first
    second = page([result(other, seed=5, attempts=4, times={GAP: 2.5})], [], first)
    assert line_of(second, one) == line_of(first, one)
    assert line_of(second, other).endswith("| 2.5 |")
    assert f"{len(ROWS)} rows, seed 1, 5." in second
    assert f"`{other}` 4, `{one}` 3." in second
    assert second.partition("## Negative controls")[2] == first.partition("## Negative controls")[2]
    assert "| 9 | local | 15 | 3 | 0 | nothing wrong | 4.0 s |" in second
    # Nothing is kept of a page when all have run.
    assert "seed 1." in page(results(), [], second)
    assert page([], [], second) == second


def test_attempts_are_kept_however_long_the_names_are() -> None:
    first = page([result(name, attempts=2) for name in NAMES], [])
    assert page([result(NAMES[0], attempts=2)], [], first) == first


def test_a_soak_replaces_the_line_of_its_seed_on_its_stack_only() -> None:
    soak = {"seed": 9, "stack": "local", "minutes": 15.0, "faults": 3, "applied": 3, "wrong": [], "gap": 4.0}
    first = page(results(), [soak, {**soak, "seed": 8}])
    second = page([], [{**soak, "gap": 5.0}, {**soak, "stack": "compose, cluster", "gap": 6.0}], first)
    assert [line for line in second.splitlines() if "nothing wrong" in line] == [
        "| 8 | local | 15 | 3 | 0 | nothing wrong | 4.0 s |",
        "| 9 | local | 15 | 3 | 0 | nothing wrong | 5.0 s |",
        "| 9 | compose, cluster | 15 | 3 | 0 | nothing wrong | 6.0 s |",
    ]


def test_a_row_whose_promise_has_changed_does_not_keep_its_line() -> None:
    present = page(results(), [])
    for name in (NAMES[0], NAMES[-1].partition("-under-")[0]):
        changed = "".join(
            line if not line.startswith(f"| `{name}` |") else line.replace(" | ", " | now ", 1)
            for line in present.splitlines(keepends=True)
        )
        with pytest.raises(ValueError, match=f"not in the results: {name}"):
            page([], [], changed)


def test_a_row_that_failed_does_not_keep_its_line() -> None:
    present = page(results(), [])
    with pytest.raises(ValueError, match=f"not passed: {NAMES[0]}$"):
        page([result(NAMES[0], outcome=Outcome.FAILED.value)], [], present)


def test_the_page_says_where_the_rows_of_a_cluster_ran() -> None:
    titles = PAGE.read_text(encoding="utf-8").split("\n## ")
    assert [title.splitlines()[0] for title in titles if "--profile cluster" in title] == ["A small cluster"]
