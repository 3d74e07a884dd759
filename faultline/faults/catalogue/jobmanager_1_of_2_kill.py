"""SIGKILL to the first of two JobManagers: if it leads, the other one takes the job over."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="jobmanager-1-of-2-kill",
    breaks=(Kill("jobmanager"),),
    heals=(Start("jobmanager"),),
    # With both gone, the restore of another fault would find none that leads.
    needs=frozenset({"jobmanager", "jobmanager-2"}),
)
