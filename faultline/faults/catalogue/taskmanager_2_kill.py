"""SIGKILL to the second TaskManager."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="taskmanager-2-kill",
    breaks=(Step("scripts/kill.sh taskmanager-2"),),
    heals=(Step("scripts/start.sh taskmanager-2"),),
    needs=frozenset({"taskmanager-2"}),
)
