"""SIGKILL to the TaskManager."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="taskmanager-kill",
    breaks=(Kill("taskmanager"),),
    heals=(Start("taskmanager"),),
    needs=frozenset({"taskmanager"}),
)
