"""A TaskManager that stands still: its process is there and does not answer."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="taskmanager-freeze",
    breaks=(Pause("taskmanager"),),
    heals=(Resume("taskmanager"),),
    needs=frozenset({"taskmanager"}),
    seconds=(1.0, 20.0),
)
