"""SIGKILL to the generator: visits are sent and not acknowledged."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="generator-kill",
    breaks=(Step("scripts/kill.sh generator"),),
    heals=(Step("scripts/generator_start.sh"),),
    # Its start asks the broker for the newest event time.
    needs=frozenset({"generator", "kafka"}),
)
