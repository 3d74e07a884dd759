"""The job is cancelled, and restored from its newest checkpoint."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="job-cancel",
    breaks=(Step("scripts/flink_cancel.sh"),),
    heals=(Step("scripts/flink_restore.sh latest"),),
    needs=frozenset({"jobmanager", "taskmanager", "kafka"}),
)
