"""SIGKILL to the synchronizer, at any moment."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="synchronizer-kill",
    breaks=(Kill("spark"),),
    heals=(Start("spark"),),
    # Its start asks for the broker.
    needs=frozenset({"spark", "kafka"}),
)
