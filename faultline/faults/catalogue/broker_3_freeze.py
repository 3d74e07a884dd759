"""The third broker stands still: its connections stay open, and the others elect leaders without it."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="broker-3-freeze",
    breaks=(Pause("kafka-3"),),
    heals=(Resume("kafka-3"),),
    needs=frozenset({"kafka-3"}),
    seconds=(1.0, 15.0),
)
