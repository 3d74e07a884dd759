"""The object store stands still: checkpoints and batches wait."""

from __future__ import annotations

from faultline.faults.catalogue.store_kill import FAULT as KILL
from faultline.faults.model import Fault
from faultline.faults.steps import Pause, Resume

FAULT = Fault(
    name="store-freeze",
    breaks=(Pause("store"),),
    heals=(Resume("store"),),
    needs=KILL.needs,
)
