"""The job is cancelled, and restored from its newest checkpoint."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Cancel, Restore

FAULT = Fault(
    name="job-cancel",
    breaks=(Cancel(),),
    heals=(Restore(),),
    needs=frozenset({"jobmanager", "taskmanager", "kafka"}),
)
