"""The second of Spark's workers stands still, with its executor."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="spark-worker-2-freeze",
    breaks=(Step("scripts/pause.sh spark-worker-2"),),
    heals=(Step("scripts/resume.sh spark-worker-2"),),
    needs=frozenset({"spark-worker-2"}),
    seconds=(1.0, 15.0),
)
