"""The broker is stopped cleanly and started."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Start, Stop

FAULT = Fault(
    name="broker-bounce",
    breaks=(Stop("kafka"),),
    heals=(Start("kafka"),),
    needs=frozenset({"kafka"}),
)
