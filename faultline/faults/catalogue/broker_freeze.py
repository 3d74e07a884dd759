"""A broker that stands still: connections stay open, and nothing answers."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="broker-freeze",
    breaks=(Pause("kafka"),),
    heals=(Resume("kafka"),),
    needs=frozenset({"kafka"}),
    seconds=(1.0, 15.0),
)
