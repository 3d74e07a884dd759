"""SIGKILL to the only JobManager: the job is gone, and a person restores it."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="jobmanager-kill",
    breaks=(Step("scripts/kill.sh jobmanager"),),
    heals=(Step("scripts/start.sh jobmanager"), Step("scripts/flink_restore.sh latest")),
    # A restore waits for all of them.
    needs=frozenset({"jobmanager", "taskmanager", "kafka"}),
    # The other one takes the job over.
    without=frozenset({"jobmanager-2"}),
)
