"""A broker that stands still: connections stay open, and nothing answers."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="broker-freeze",
    breaks=(Step("scripts/pause.sh kafka"),),
    heals=(Step("scripts/resume.sh kafka"),),
    needs=frozenset({"kafka"}),
    seconds=(1.0, 15.0),
)
