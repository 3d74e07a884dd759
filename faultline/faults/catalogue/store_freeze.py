"""The object store stands still: checkpoints and batches wait."""

from __future__ import annotations

from faultline.faults.catalogue.store_kill import FAULT as KILL
from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="store-freeze",
    breaks=(Step("scripts/pause.sh store"),),
    heals=(Step("scripts/resume.sh store"),),
    needs=KILL.needs,
)
