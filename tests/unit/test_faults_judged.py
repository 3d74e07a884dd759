"""Checks of a row on a verdict, and on the sink's log."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faultline.faults.judge import Look, Predicted
from faultline.faults.judges.batches import Batches, RepeatsBatch
from faultline.faults.judges.moments import BatchPlanned
from faultline.faults.judges.windows import LosesPrepared, RepeatsSinceCheckpoint
from faultline.faults.model import Row
from faultline.faults.rows import ROWS
from faultline.faults.scene import Scene
from faultline.faults.timeline import SPARK, Timeline
from faultline.faults.verdicts import none_holds, of_verdict
from faultline.formats.jobs import AT_LEAST_ONCE
from faultline.stack.stack import open_stack
from faultline.storage.engines import flink_name

KILL = ROWS["taskmanager-kill"]
OLDER = ROWS["cancel-restore-older"]
OUTAGE = ROWS["outage-longer-than-the-transaction-timeout"]
APPEND = ROWS["sink-foreach-append"]
COUNTS = ("lost", "duplicated", "unexpected", "disordered", "pending")


def one(pipeline: str, outcome: str = "holds", **counts: int) -> dict[str, Any]:
    return {"pipeline": pipeline, "outcome": outcome, **dict.fromkeys((*COUNTS, "late", "rejected"), 0), **counts}


def verdict(flink: dict[str, Any], spark: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"verdicts": [spark or one("spark"), flink], "source": one("source")}


def passes(row: Row, found: dict[str, Any], predicted: Predicted | None = None) -> bool:
    return all(check.ok for check in of_verdict(row, found, predicted or Predicted()))


@pytest.mark.parametrize(
    ("row", "predicted", "right"),
    [
        (KILL, Predicted(), one("flink")),
        (OLDER, Predicted(repeated=7), one("flink", "violated", duplicated=7)),
        (OUTAGE, Predicted(lost=3), one("flink", "violated", lost=3)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink", "violated", duplicated=5)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink")),
    ],
)
def test_a_row_passes_with_what_is_predicted_and_with_nothing_else(
    row: Row, predicted: Predicted, right: dict[str, Any]
) -> None:
    assert passes(row, verdict(right), predicted)
    for name in COUNTS:
        if name != "duplicated" or row.mode != AT_LEAST_ONCE:
            wrong = {**right, "outcome": "violated", name: right[name] + 1}
            assert not passes(row, verdict(wrong), predicted), name
    assert not passes(row, verdict(one("flink", "unknown")), predicted)
    assert not passes(row, {**verdict(right), "source": None}, predicted)


def test_a_batch_that_is_written_twice_is_all_that_is_wrong() -> None:
    predicted = Predicted(lines=10)
    right = one("spark", "violated", duplicated=10)
    assert passes(APPEND, verdict(one("flink"), right), predicted)
    for name in COUNTS:
        assert not passes(APPEND, verdict(one("flink"), {**right, name: right[name] + 1}), predicted), name
    assert not passes(APPEND, verdict(one("flink"), one("spark", "unknown")), predicted)


def test_rows_that_predict_say_what() -> None:
    assert RepeatsSinceCheckpoint() in OLDER.judged
    assert LosesPrepared() in OUTAGE.judged
    assert RepeatsBatch() in APPEND.judged


def test_no_verdict_is_not_a_verdict_that_does_not_hold() -> None:
    def ok(*found: dict[str, Any]) -> bool:
        return all(check.ok for check in none_holds({"verdicts": list(found)}))

    assert ok(one("flink", "unknown"), one("spark", "violated"))
    assert not ok(one("flink", "holds"), one("spark", "violated"))
    assert not ok(one("spark", "violated"))
    assert not ok()


def test_a_batch_is_planned_when_a_sample_after_the_fault_says_so(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    look = Look(Scene(tmp_path, timeline, open_stack({"BACKEND": "local"}, {"STACK_HOME": str(tmp_path)})), KILL)
    planned = {"batch": 3, "begin": {"0": 1}, "end": {"0": 5}, "visits": 4}

    def sampled(at: float, **found: object) -> None:
        with (tmp_path / SPARK).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": at, **found}) + "\n")

    Batches().before_repair(look)
    assert look.remembered(Batches()) is None
    sampled(time.time() - 1, batch=2, planned=planned)
    timeline.add("broken", "")
    assert not BatchPlanned().in_time(look)
    sampled(time.time() + 1, batch=2, planned=planned)
    assert BatchPlanned().in_time(look)
    Batches().before_repair(look)
    assert look.remembered(Batches()) == planned
    assert RepeatsBatch().predicted(look) == Predicted(lines=4)
    for _ in range(40):
        sampled(time.time() + 2, unknown="the object store does not answer")
    assert not BatchPlanned().in_time(look)
    Batches().before_repair(look)
    assert look.remembered(Batches()) == planned
    sampled(time.time() + 2, batch=3, planned=None)
    assert not BatchPlanned().in_time(look)
    Batches().before_repair(look)
    assert Batches().settled(look) == []
    held = Look(look.scene, ROWS["synchronizer-kill-before-commit"])
    assert [check.ok for check in Batches().before_repair(held)] == [False]
    sampled(time.time() + 3, batch=3, planned=planned)
    assert [check.ok for check in Batches().before_repair(held)] == [True]


@pytest.mark.parametrize(
    ("address", "path"),
    [("file:/a/chk-1", "/a/chk-1"), ("file:///a/chk-1", "/a/chk-1"), ("s3://bucket/a/chk-1", "s3://bucket/a/chk-1")],
)
def test_a_checkpoint_is_named_by_its_path_or_its_uri(address: str, path: str) -> None:
    assert flink_name(address) == path
