"""Everything at once."""

from __future__ import annotations

from faultline.faults.judges.offsets import Restored
from faultline.faults.model import Row
from faultline.faults.rows.lines import NOTHING, SERVICES
from faultline.faults.steps import Down, Kill, Restore, Start, Up

ROWS = (
    Row(
        "power-cut",
        tuple(Kill(name) for name in SERVICES),
        (
            *(Start(name) for name in ("kafka", "jobmanager", "taskmanager")),
            Restore(), Start("spark"), Start("generator"),
        ),
        judged=(Restored(),),
        promise="nothing acknowledged is lost, nothing is repeated",
        why="everything that was promised is in files: the topics, the checkpoints, the outputs",
    ),
    Row(
        "down-and-up", (Down(),), (Up(),), seconds=1,
        judged=(Restored(),),
        promise=NOTHING, why="up restores the job from its newest retained checkpoint",
    ),
)  # fmt: skip
