"""The generator, and visits that are hard to process."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.readers import Wrote
from faultline.faults.judges.windows import SetsAside
from faultline.faults.model import Row
from faultline.faults.rows.lines import NOTHING, broken
from faultline.faults.steps import Inside, Step

_TASKMANAGER = CATALOGUE["taskmanager-kill"]
_ONE_KEY = "--active-visits 1 --pages-per-visit 1000000"


def _from_2040(count: int) -> Step:
    """Send so many visits from the future."""
    return Inside("generator", f"python -m generator --total {count} --rate 8 --start 2040-01-01T00:00:00Z")


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
        "hostile-visits", _TASKMANAGER.breaks, _TASKMANAGER.heals,
        load="--late-percent 3 --duplicated-percent 3 --unparsable-percent 3",
        judged=(SetsAside(("late", "rejected")), Wrote("repeated", 1)),
        promise="late and unparsable visits are routed once each, and none is lost",
        why="what is late follows from the topic alone: the clocks are in the checkpoint",
    ),
    Row(
        "visits-of-one-megabyte", _TASKMANAGER.breaks, _TASKMANAGER.heals, load="--large-percent 20", fills=True,
        judged=(Wrote("longest", 1_000_000),),
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
        "clock-jump-of-one-visit", (_from_2040(1), *_TASKMANAGER.breaks), _TASKMANAGER.heals, stains=True,
        judged=(SetsAside(("late",)),),
        promise="nothing is lost; what comes after it in its partition is late",
        why="each partition has its clock, which only moves forward; a restored job knows the same clocks",
    ),
    Row(
        "clock-jump", (_from_2040(8), *_TASKMANAGER.breaks), _TASKMANAGER.heals, stains=True,
        judged=(SetsAside(("late",)),),
        promise="nothing is lost; what comes after visits from the future in all partitions is late",
        why="event time only moves forward; a restored job knows the same clock",
    ),
)  # fmt: skip
