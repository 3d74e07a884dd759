"""Which long tests CI runs: each on one day of seven. `scripts/test.sh full` runs all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pytest
from _pytest.mark.structures import ParameterSet

PARTS = 7
DAY = int(os.environ.get("FAULTLINE_TURN", datetime.now(UTC).timetuple().tm_yday))
"""Day of the year. scripts/test.sh sets the variable, so that all of its processes agree at midnight, too."""


def in_turn(number: int) -> list[pytest.MarkDecorator]:
    """Return the marks of a long test by its number, a walkthrough's or any other: none when it is its turn."""
    return [] if number % PARTS == DAY % PARTS else [pytest.mark.full]


def turns(names: Iterable[str]) -> list[ParameterSet]:
    """Return walkthroughs as parameters of a test; each name begins with the walkthrough's number."""
    return [pytest.param(name, marks=in_turn(int(name[:2]))) for name in names]


def one_a_day(names: Sequence[str], first: int = 0) -> list[ParameterSet]:
    """Return names as parameters of a test that runs for one of them, the next one each day.

    `first`: the number of the one that begins, so that two tests of the same names run for different ones.
    """
    turn = names[(DAY + first) % len(names)]
    return [pytest.param(name, marks=[] if name == turn else [pytest.mark.full]) for name in names]
