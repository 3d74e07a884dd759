"""Everything at once."""

from __future__ import annotations

from faultline.faults.judges.offsets import Restored
from faultline.faults.model import Row, Step
from faultline.faults.rows.lines import NOTHING, SERVICES

ROWS = (
    Row(
        "power-cut",
        tuple(Step(f"scripts/kill.sh {name}") for name in SERVICES),
        (
            *(Step(f"scripts/start.sh {name}") for name in ("kafka", "jobmanager", "taskmanager")),
            Step("scripts/flink_restore.sh latest"), Step("scripts/spark_start.sh"), Step("scripts/generator_start.sh"),
        ),
        judged=(Restored(),),
        promise="nothing acknowledged is lost, nothing is repeated",
        why="everything that was promised is in files: the topics, the checkpoints, the outputs",
    ),
    Row(
        "down-and-up", (Step("scripts/down.sh"),), (Step("scripts/up.sh"),), seconds=1,
        judged=(Restored(),),
        promise=NOTHING, why="up restores the job from its newest retained checkpoint",
    ),
)  # fmt: skip
