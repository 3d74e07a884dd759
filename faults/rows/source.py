"""The generator, and visits that are hard to process."""

from __future__ import annotations

from faults.model import Row, Step
from faults.rows.lines import FAULT, NOTHING, broken

_TASKMANAGER = FAULT["taskmanager-kill"]
_ONE_KEY = "--active-visits 1 --pages-per-visit 1000000"

ROWS = (
    Row(
        "generator-freeze", *broken("generator-freeze"), seconds=20,
        promise=NOTHING, why="no visits are no failure: windows wait for event time",
    ),
    Row(
        "generator-kill", *broken("generator-kill"),
        promise="every acknowledged visit is there once; one that was sent and not acknowledged, at most once",
        why="the ledger has each visit before it is sent, and again when it is acknowledged",
    ),
    Row(
        "hostile-visits", _TASKMANAGER.breaks, _TASKMANAGER.heals, sets_aside=("late", "rejected"),
        load="--late-percent 3 --duplicated-percent 3 --unparsable-percent 3",
        promise="late and unparsable visits are routed once each, and none is lost",
        why="what is late follows from the topic alone: the clocks are in the checkpoint",
    ),
    Row(
        "visits-of-one-megabyte", _TASKMANAGER.breaks, _TASKMANAGER.heals, load="--large-percent 20",
        promise=NOTHING, why="a fetch returns at least one record, whatever its size",
    ),
    Row(
        "one-partition-idle", _TASKMANAGER.breaks, _TASKMANAGER.heals, load=_ONE_KEY,
        promise=NOTHING, why="an idle partition does not hold the watermark, and its clock is in the checkpoint",
    ),
    Row(
        "one-partition-empty", _TASKMANAGER.breaks, _TASKMANAGER.heals, load=_ONE_KEY,
        settings=(("GENERATOR_ARGS", _ONE_KEY),),
        promise=NOTHING, why="a partition that never had a visit does not hold the watermark",
    ),
    Row(
        "clock-jump",
        (
            Step("scripts/exec.sh generator python -m generator --total 8 --rate 8 --start 2040-01-01T00:00:00Z"),
            *_TASKMANAGER.breaks,
        ),
        _TASKMANAGER.heals, sets_aside=("late",), stains=True,
        promise="nothing is lost; what comes after visits from the future is late",
        why="event time only moves forward; a restored job knows the same clock",
    ),
)  # fmt: skip
