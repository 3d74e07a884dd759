"""The broker is stopped cleanly and started."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="broker-bounce",
    breaks=(Step("scripts/stop.sh kafka"),),
    heals=(Step("scripts/start.sh kafka"),),
    needs=frozenset({"kafka"}),
)
