"""SIGKILL to the broker."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="broker-kill",
    breaks=(Step("scripts/kill.sh kafka"),),
    heals=(Step("scripts/start.sh kafka"),),
    needs=frozenset({"kafka"}),
)
