"""SIGKILL to the second broker: the others go on."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="broker-2-kill",
    breaks=(Step("scripts/kill.sh kafka-2"),),
    heals=(Step("scripts/start.sh kafka-2"),),
    needs=frozenset({"kafka-2"}),
)
