"""The second of Spark's workers stands still, with its executor."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="spark-worker-2-freeze",
    breaks=(Pause("spark-worker-2"),),
    heals=(Resume("spark-worker-2"),),
    needs=frozenset({"spark-worker-2"}),
    seconds=(1.0, 15.0),
)
