"""SIGKILL to the object store: checkpoints and batches fail until it is back."""

from __future__ import annotations

from faultline.faults.model import Fault
from faultline.faults.steps import Kill, Start

FAULT = Fault(
    name="store-kill",
    breaks=(Kill("store"),),
    # A driver whose commit has failed ends.
    heals=(Start("store"), Start("spark")),
    # Until it answers again, nothing starts that has its data there.
    needs=frozenset(
        {
            "store",
            "jobmanager",
            "jobmanager-2",
            "taskmanager",
            "taskmanager-2",
            "spark",
            "spark-worker",
            "spark-worker-2",
        }
    ),
)
