"""Which long tests CI runs: a fifth of them, another fifth each day. `scripts/test.sh full` runs all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from _pytest.mark.structures import ParameterSet

PARTS = 5
TURN = int(os.environ.get("FAULTLINE_TURN", datetime.now(UTC).timetuple().tm_yday)) % PARTS
"""scripts/test.sh sets the variable, so that all of its processes agree at midnight, too."""


def in_turn(number: int) -> list[pytest.MarkDecorator]:
    """Return the marks of a long test by its number, a walkthrough's or any other: none when it is its turn."""
    return [] if number % PARTS == TURN else [pytest.mark.full]


def turns(names: Iterable[str]) -> list[ParameterSet]:
    """Return walkthroughs as parameters of a test; each name begins with the walkthrough's number."""
    return [pytest.param(name, marks=in_turn(int(name[:2]))) for name in names]
