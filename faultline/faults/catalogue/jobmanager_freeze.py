"""A JobManager that stands still: tasks run, and no checkpoint is triggered or completed."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="jobmanager-freeze",
    breaks=(Step("scripts/pause.sh jobmanager"),),
    heals=(Step("scripts/resume.sh jobmanager"),),
    needs=frozenset({"jobmanager"}),
    seconds=(1.0, 15.0),
)
