"""A synchronizer that stands still."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="synchronizer-freeze",
    breaks=(Pause("spark"),),
    heals=(Resume("spark"),),
    needs=frozenset({"spark"}),
    seconds=(1.0, 15.0),
)
