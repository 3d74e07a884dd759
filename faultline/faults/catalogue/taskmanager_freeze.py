"""A TaskManager that stands still: its process is there and does not answer."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="taskmanager-freeze",
    breaks=(Step("scripts/pause.sh taskmanager"),),
    heals=(Step("scripts/resume.sh taskmanager"),),
    needs=frozenset({"taskmanager"}),
    seconds=(1.0, 20.0),
)
