"""Which walkthroughs CI runs: a third of them, another third each day. `scripts/test.sh full` runs all."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

THIRDS = 3
TURN = int(os.environ.get("FAULTLINE_TURN", datetime.now(UTC).timetuple().tm_yday)) % THIRDS
"""scripts/test.sh sets the variable, so that all of its processes agree at midnight, too."""


def in_turn(position: int) -> list[pytest.MarkDecorator]:
    """Return the marks of a walkthrough by its number: none when it is its turn."""
    return [] if position % THIRDS == TURN else [pytest.mark.full]
