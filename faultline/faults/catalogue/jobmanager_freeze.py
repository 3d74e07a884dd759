"""A JobManager that stands still: tasks run, and no checkpoint is triggered or completed."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="jobmanager-freeze",
    breaks=(Pause("jobmanager"),),
    heals=(Resume("jobmanager"),),
    needs=frozenset({"jobmanager"}),
    seconds=(1.0, 15.0),
)
