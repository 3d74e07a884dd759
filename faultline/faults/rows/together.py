"""Two faults at once."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.offsets import Cancelled, Restored
from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import (
    CHECKPOINTS_BACK,
    CHECKPOINTS_ON_A_SMALL_DISK,
    NOTHING,
    SAME_RANGE,
    SERVICES,
)
from faultline.faults.steps import Kill, Later, Line, Pause, Refused, Restore, Resume, Start, Stop

_TASKMANAGER = CATALOGUE["taskmanager-kill"]
_SPARK = CATALOGUE["synchronizer-kill"]

ROWS = (
    Row(
        "broker-bounce-while-the-job-restarts", (*_TASKMANAGER.breaks, Stop("kafka")),
        (Start("taskmanager"), Later(3, Start("kafka"))),
        promise=NOTHING, why="each recovers from what is on disk",
    ),
    Row(
        "broker-kill-while-the-taskmanager-is-frozen", (Pause("taskmanager"),
        Kill("kafka")),
        (Start("kafka"), Resume("taskmanager")), seconds=10,
        promise=NOTHING, why="the broker's log has the transaction; whoever owns its id now ends it",
    ),
    Row(
        "synchronizer-kill-while-the-broker-is-frozen", (Pause("kafka"), *_SPARK.breaks),
        (Resume("kafka"), *_SPARK.heals),
        promise=NOTHING, why=SAME_RANGE,
    ),
    Row(
        "restore-while-the-disk-is-full",
        (*CATALOGUE["job-cancel"].breaks, Line("faultline/faults/small_disk.sh fill {flink}")),
        (
            Refused(Restore(), "No space left on device"),
            Line("faultline/faults/small_disk.sh free {flink}"), Restore(),
        ),
        prepares=CHECKPOINTS_ON_A_SMALL_DISK, undo=CHECKPOINTS_BACK,
        needs=(Need.DISK, Need.MOUNT), seconds=1,
        judged=(Restored(), Cancelled()),
        promise="the restore is refused until there is room; nothing is lost or repeated",
        why="a job leaves its settings beside its checkpoints: without room for them it is not submitted",
    ),
    Row(
        "everything-frozen", tuple(Pause(name) for name in SERVICES),
        tuple(Resume(name) for name in SERVICES), seconds=12,
        promise=NOTHING, why="a laptop that sleeps: each service finds its peers again, or starts from its checkpoint",
    ),
)  # fmt: skip
