"""SIGKILL to the generator: visits are sent and not acknowledged."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, StartGenerator

FAULT = Fault(
    name="generator-kill",
    breaks=(Kill("generator"),),
    heals=(StartGenerator(),),
    # Its start asks the broker for the newest event time.
    needs=frozenset({"generator", "kafka"}),
)
