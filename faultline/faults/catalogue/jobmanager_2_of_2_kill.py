"""SIGKILL to the second of two JobManagers: if it leads, the first one takes the job over."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="jobmanager-2-of-2-kill",
    breaks=(Kill("jobmanager-2"),),
    heals=(Start("jobmanager-2"),),
    # With both gone, the restore of another fault would find none that leads.
    needs=frozenset({"jobmanager", "jobmanager-2"}),
)
