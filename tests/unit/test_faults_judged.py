"""Checks of a row on a verdict, and on the sink's log."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from faultline.faults import model
from faultline.faults.judge import Check, Judge, Look, Predicted
from faultline.faults.judges.batches import Batches, RepeatsBatch
from faultline.faults.judges.moments import BatchPlanned
from faultline.faults.judges.windows import LosesPrepared, RepeatsSinceCheckpoint
from faultline.faults.model import Row
from faultline.faults.phases import run_row
from faultline.faults.plan import Planned
from faultline.faults.rows import ROWS
from faultline.faults.scene import Scene, StepFailed
from faultline.faults.timeline import SPARK, Timeline
from faultline.faults.trial import Trial
from faultline.faults.verdicts import none_holds, of_control, of_verdict
from faultline.formats.jobs import AT_LEAST_ONCE
from faultline.formats.verdict import CATEGORIES, SOURCE, Outcome, Verdict, Verdicts
from faultline.stack.stack import Stack, open_stack
from faultline.storage.engines import flink_name

KILL = ROWS["taskmanager-kill"]
OLDER = ROWS["cancel-restore-older"]
OUTAGE = ROWS["outage-longer-than-the-transaction-timeout"]
APPEND = ROWS["sink-foreach-append"]


def one(pipeline: str, outcome: Outcome = Outcome.HOLDS, **counts: int) -> Verdict:
    return Verdict.from_json({**Verdict(pipeline, outcome, "why").as_json(), **counts})


def verdict(flink: Verdict, spark: Verdict | None = None) -> Verdicts:
    return Verdicts((one(SOURCE), spark or one("spark"), flink))


def one_more(found: Verdict, name: str) -> Verdict:
    return Verdict.from_json({**found.as_json(), name: found.counts[name] + 1})


def passes(row: Row, found: Verdicts, predicted: Predicted | None = None) -> bool:
    return all(check.ok for check in of_verdict(row, found, predicted or Predicted()))


@pytest.mark.parametrize(
    ("row", "predicted", "right"),
    [
        (KILL, Predicted(), one("flink")),
        (OLDER, Predicted(repeated=7), one("flink", Outcome.VIOLATED, duplicated=7)),
        (OUTAGE, Predicted(lost=3), one("flink", Outcome.VIOLATED, lost=3)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink", Outcome.VIOLATED, duplicated=5)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink")),
    ],
)
def test_a_row_passes_with_what_is_predicted_and_with_nothing_else(
    row: Row, predicted: Predicted, right: Verdict
) -> None:
    assert passes(row, verdict(right), predicted)
    for name in CATEGORIES:
        if name != "duplicated" or row.mode != AT_LEAST_ONCE:
            wrong = replace(one_more(right, name), outcome=Outcome.VIOLATED)
            assert not passes(row, verdict(wrong), predicted), name
    assert not passes(row, verdict(one("flink", Outcome.UNKNOWN)), predicted)
    assert not passes(row, Verdicts((one("spark"), right)), predicted)


def test_a_batch_that_is_written_twice_is_all_that_is_wrong() -> None:
    predicted = Predicted(lines=10)
    right = one("spark", Outcome.VIOLATED, duplicated=10)
    assert passes(APPEND, verdict(one("flink"), right), predicted)
    for name in CATEGORIES:
        assert not passes(APPEND, verdict(one("flink"), one_more(right, name)), predicted), name
    assert not passes(APPEND, verdict(one("flink"), one("spark", Outcome.UNKNOWN)), predicted)


def test_rows_that_predict_say_what() -> None:
    assert RepeatsSinceCheckpoint() in OLDER.judged
    assert LosesPrepared() in OUTAGE.judged
    assert RepeatsBatch() in APPEND.judged


def test_no_verdict_is_not_a_verdict_that_does_not_hold() -> None:
    def ok(*found: Verdict) -> bool:
        return all(check.ok for check in none_holds(Verdicts(found)))

    assert ok(one("flink", Outcome.UNKNOWN), one("spark", Outcome.VIOLATED))
    assert not ok(one("flink", Outcome.HOLDS), one("spark", Outcome.VIOLATED))
    assert not ok(one("spark", Outcome.VIOLATED))
    assert not ok()


@pytest.mark.parametrize("pipeline", ["flink", "spark"])
def test_a_control_passes_only_if_the_verdict_finds_what_was_not_wrong_before(pipeline: str) -> None:
    def ok(outcome: Outcome, before: int, **counts: int) -> bool:
        found = Verdicts((one(pipeline, outcome, **counts),))
        return all(check.ok for check in of_control(replace(KILL, caught=pipeline), found, before))

    for name in ("lost", "duplicated", "unexpected"):
        assert ok(Outcome.VIOLATED, 2, **{name: 3})
        assert not ok(Outcome.VIOLATED, 3, **{name: 3})
    for outcome in (Outcome.HOLDS, Outcome.UNKNOWN):
        assert not ok(outcome, 0, lost=1)


def down(home: Path) -> Stack:
    return open_stack({"BACKEND": "local"}, {"STACK_HOME": str(home)})


GOOD, BAD = Check("a", "1", "1"), Check("b", "1", "2")


@pytest.mark.parametrize(
    ("checks", "outcome"),
    [
        ([GOOD, GOOD], model.RowOutcome.PASSED), ([], model.RowOutcome.FAILED),
        ([GOOD, BAD], model.RowOutcome.FAILED), ([BAD, GOOD], model.RowOutcome.FAILED),
    ],
)  # fmt: skip
def test_a_row_is_passed_by_all_of_its_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: list[Check], outcome: model.RowOutcome
) -> None:
    monkeypatch.setattr(Trial, "run", lambda trial, _moment: trial.checks.extend(checks))
    result = run_row(Planned(KILL, 0.0, 1), tmp_path / "row", down(tmp_path), installs=False)
    assert (result.outcome, result.reason, result.checks) == (outcome, "", checks)


@dataclass(frozen=True)
class Repeats(Judge):
    """It says that a fault repeats so much."""

    found: Predicted
    repeats: ClassVar[bool] = True

    def predicted(self, look: Look) -> Predicted:
        return self.found


def test_a_row_that_repeats_proves_nothing_where_nothing_is_to_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scene, "wait_for_checkpoints", lambda *_: {})

    def attempts(judge: Judge) -> int:
        # Caught: no judge but this one.
        row = replace(KILL, breaks=(), heals=(), seconds=0, judged=(judge,), caught="flink")
        scene = Scene(tmp_path, Timeline(tmp_path), down(tmp_path))
        assert Trial(row, scene)._break_and_heal() == judge.predicted(Look(scene, row))
        return scene.attempts

    assert [attempts(judge) for judge in (Judge(), Repeats(Predicted(1)), Repeats(Predicted(lines=1)))] == [1, 1, 1]
    for judge in (Repeats(Predicted()), Repeats(Predicted(lost=1))):
        with pytest.raises(StepFailed, match="the moment was missed 5 times"):
            attempts(judge)


def test_a_batch_is_planned_when_a_sample_after_the_fault_says_so(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    look = Look(Scene(tmp_path, timeline, down(tmp_path)), KILL)
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
