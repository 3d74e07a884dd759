"""SIGKILL to the broker."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="broker-kill",
    breaks=(Kill("kafka"),),
    heals=(Start("kafka"),),
    needs=frozenset({"kafka"}),
)
