"""SIGKILL to the second TaskManager."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="taskmanager-2-kill",
    breaks=(Kill("taskmanager-2"),),
    heals=(Start("taskmanager-2"),),
    needs=frozenset({"taskmanager-2"}),
)
