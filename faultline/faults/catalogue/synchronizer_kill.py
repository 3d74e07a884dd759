"""SIGKILL to the synchronizer, at any moment."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, StartSynchronizer

FAULT = Fault(
    name="synchronizer-kill",
    breaks=(Kill("spark"),),
    heals=(StartSynchronizer(),),
    # Its start asks for the broker.
    needs=frozenset({"spark", "kafka"}),
)
