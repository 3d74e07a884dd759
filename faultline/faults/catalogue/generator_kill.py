"""SIGKILL to the generator: visits are sent and not acknowledged."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="generator-kill",
    breaks=(Kill("generator"),),
    heals=(Start("generator"),),
    # Its start asks the broker for the newest event time.
    needs=frozenset({"generator", "kafka"}),
)
