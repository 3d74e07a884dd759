"""SIGKILL to the only JobManager: the job is gone, and a person restores it."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Restore, Start

FAULT = Fault(
    name="jobmanager-kill",
    breaks=(Kill("jobmanager"),),
    heals=(Start("jobmanager"), Restore()),
    # A restore waits for all of them.
    needs=frozenset({"jobmanager", "taskmanager", "kafka"}),
    # The other one takes the job over.
    without=frozenset({"jobmanager-2"}),
)
