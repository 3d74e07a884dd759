"""A generator that stands still: event time does not move, and its connections stay open."""

from __future__ import annotations

from faultline.faults.model import Fault, Step

FAULT = Fault(
    name="generator-freeze",
    breaks=(Step("scripts/pause.sh generator"),),
    heals=(Step("scripts/resume.sh generator"),),
    needs=frozenset({"generator"}),
    seconds=(1.0, 15.0),
)
