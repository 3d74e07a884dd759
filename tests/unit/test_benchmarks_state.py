"""Readings and output of the benchmarks of state and of barriers, without a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import alignment, open_windows, state_growth
from benchmarks.faultless import START
from benchmarks.growth_report import Row, load, save
from benchmarks.job_times import Checkpoint, checkpoint_of, ended, initializing_seconds, run_since
from benchmarks.state_growth import main, windows_in
from faultline.formats.visit import parse_visit
from faultline.stack.errors import StackError

# As the JobManager of Flink 2.2 answers at /jobs/<id>/checkpoints.
COMPLETED: dict[str, Any] = {
    "id": 7,
    "status": "COMPLETED",
    "is_savepoint": False,
    "trigger_timestamp": 1_000,
    "latest_ack_timestamp": 1_250,
    "state_size": 5_000,
    "checkpointed_size": 800,
    "end_to_end_duration": 250,
    "persisted_data": 40,
}
FAILED = COMPLETED | {"id": 8, "status": "FAILED", "latest_ack_timestamp": -1, "end_to_end_duration": 60_000}


def test_a_checkpoint_takes_from_its_trigger_to_its_last_acknowledgement() -> None:
    assert checkpoint_of(COMPLETED) == Checkpoint(7, True, 0.25, 5_000, 800, 40)


def test_a_failed_checkpoint_counts_and_one_in_progress_does_not() -> None:
    history = [COMPLETED, FAILED, COMPLETED | {"status": "IN_PROGRESS"}, COMPLETED | {"is_savepoint": True}]
    assert [(each.number, each.complete, each.seconds) for each in ended({"history": history})] == [
        (7, True, 0.25),
        (8, False, 60.0),
    ]


def test_the_slowest_task_says_how_long_a_restore_took() -> None:
    tasks = [
        {"timestamps": {"CREATED": 0, "INITIALIZING": 100, "RUNNING": 400}},
        {"timestamps": {"CREATED": 0, "INITIALIZING": 200, "RUNNING": 1_700}},
    ]
    assert initializing_seconds(tasks) == 1.5


@pytest.mark.parametrize(
    ("initializing", "running", "expected"),
    [(11_000, 12_000, True), (11_000, 0, False), (9_000, 9_500, False), (0, 0, False)],
)
def test_a_task_that_was_killed_is_not_taken_for_the_restored_one(
    initializing: int, running: int, expected: bool
) -> None:
    task = {"timestamps": {"INITIALIZING": initializing, "RUNNING": running}}
    assert run_since(task, since=10.0) is expected


def test_open_windows_are_counted_in_the_operator_that_keeps_them() -> None:
    timers: dict[str, Any] = {"windows": []}
    report = {
        "operators": [
            {"uid": "windows-local", "state": [{"windows": [{"keys": 9}]}]},
            {"uid": "windows", "state": [{"windows": [{"keys": 3}, {"keys": 4}]}, timers]},
        ]
    }
    assert windows_in(report) == 7


def test_each_id_has_a_visit_in_the_one_window() -> None:
    found = list(open_windows.visits(2_500, 1, 0, 1_000))
    assert len({record.key for record in found}) == 2_500
    assert {record.timestamp // 1_000 for record in found} == {START // 1_000}
    assert all(parse_visit(record.value) for record in found[:50])


def test_changed_windows_are_some_of_those_that_are_open() -> None:
    everything = {record.key for record in open_windows.visits(1_000, 1, 0, 10_000)}
    changed = [record.key for record in open_windows.visits(1_000, 100, 3, 10_000)]
    assert len(changed) == 10
    assert everything.issuperset(changed)


ROWS = [Row("rocksdb", 1_000, 1_010, 9, (0.3, 0.1, 0.2), (2_048, 4_096), (512,), (1.0,), 2.34, 1_000, "holds", True)]


def test_the_figures_can_be_read_again(tmp_path: Path) -> None:
    save(ROWS, tmp_path / "figures.json")
    assert load(tmp_path / "figures.json") == ROWS


def test_the_share_of_completed_checkpoints_counts_those_that_failed() -> None:
    found = [Checkpoint(1, True, 2.0, 2_048, 2_048, 1_024), Checkpoint(2, False, 60.0, 0, 0, 0)]
    outcome = alignment.Figures("aligned", 512.4, tuple(found), 300, "holds", False)
    assert alignment.cells(outcome) == ("aligned", "512", 2, "50%", "2.0", "2.0", "2", "1", "300", "holds")
    none = alignment.Figures("aligned", 512.4, tuple(found[1:]), 300, "holds", False)
    assert alignment.cells(none)[3:7] == ("0%", "-", "0.0", "-")


@pytest.mark.parametrize("words", [["0"], ["1000,x"], ["1000", "none"]])
def test_numbers_that_are_none_are_refused(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["state_growth", *words])
    monkeypatch.setattr(state_growth, "interrupt_once", lambda: None)
    with pytest.raises(StackError, match="needs a whole number above 0"):
        main()
