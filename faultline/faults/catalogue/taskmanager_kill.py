"""SIGKILL to the TaskManager."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="taskmanager-kill",
    breaks=(Step("scripts/kill.sh taskmanager"),),
    heals=(Step("scripts/start.sh taskmanager"),),
    needs=frozenset({"taskmanager"}),
)
