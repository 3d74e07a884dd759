"""SIGKILL to the second broker: the others go on."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="broker-2-kill",
    breaks=(Kill("kafka-2"),),
    heals=(Start("kafka-2"),),
    needs=frozenset({"kafka-2"}),
)
