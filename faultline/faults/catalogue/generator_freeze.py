"""A generator that stands still: event time does not move, and its connections stay open."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="generator-freeze",
    breaks=(Pause("generator"),),
    heals=(Resume("generator"),),
    needs=frozenset({"generator"}),
    seconds=(1.0, 15.0),
)
