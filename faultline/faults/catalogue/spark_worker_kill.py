"""SIGKILL to the first of Spark's workers, with its executor."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="spark-worker-kill",
    breaks=(Kill("spark-worker"),),
    heals=(Start("spark-worker"),),
    needs=frozenset({"spark-worker"}),
)
