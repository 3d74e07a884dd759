"""SIGKILL to the object store: checkpoints and batches fail until it is back."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="store-kill",
    breaks=(Step("scripts/kill.sh store"),),
    # A driver whose commit has failed ends.
    heals=(Step("scripts/start.sh store"), Step("scripts/start.sh spark")),
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
