"""SIGKILL to the first of Spark's workers, with its executor."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="spark-worker-kill",
    breaks=(Step("scripts/kill.sh spark-worker"),),
    heals=(Step("scripts/start.sh spark-worker"),),
    needs=frozenset({"spark-worker"}),
)
