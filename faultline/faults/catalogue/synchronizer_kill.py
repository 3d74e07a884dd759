"""SIGKILL to the synchronizer, at any moment."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="synchronizer-kill",
    breaks=(Step("scripts/kill.sh spark"),),
    heals=(Step("scripts/spark_start.sh"),),
    # Its start asks for the broker.
    needs=frozenset({"spark", "kafka"}),
)
