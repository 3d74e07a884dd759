"""A synchronizer that stands still."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="synchronizer-freeze",
    breaks=(Step("scripts/pause.sh spark"),),
    heals=(Step("scripts/resume.sh spark"),),
    needs=frozenset({"spark"}),
    seconds=(1.0, 15.0),
)
