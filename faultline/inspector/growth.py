"""The growth of a part of a checkpoint, from its sizes over time, and the forecast that follows.

A forecast is a straight line through the recorded sizes. It is made only where the sizes lie on such a line: the state
of open windows comes and goes, and a line through its sizes says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.inspector.model import Growth
from faultline.inspector.words import age_words, size_words

MINIMUM = 4
"""Sizes that are needed to say how a part grows."""
STEADY = 0.9
"""Correlation of size and time from which on growth counts as steady."""
DAY_MS = 86_400_000
FORECAST_DAYS = 30

Sizes = Sequence[tuple[int, int]]
"""Milliseconds since the epoch, and bytes then."""


def bytes_per_day(sizes: Sizes) -> int | None:
    """Return the slope of a straight line through the sizes; None for too few, or when they do not lie on a line."""
    times, values = [at for at, _ in sizes], [size for _, size in sizes]
    if len(sizes) < MINIMUM or min(times) == max(times):
        return None
    if min(values) == max(values):
        return 0
    # Loading it takes as long as reading 1,000 batches.
    from statistics import correlation, linear_regression  # noqa: PLC0415

    if abs(correlation(times, values)) < STEADY:
        return None
    return round(linear_regression(times, values).slope * DAY_MS)


def sentence(growth: Growth) -> str:
    """Say how big it is, how fast it grows, and how big it is in a month at that rate."""
    now = f"{growth.what}: {size_words(growth.size)} now"
    span = age_words(growth.span_ms / 1000)
    if growth.per_day is None:
        return f"{now}; no steady growth in the {span} on record"
    if growth.per_day <= 0:
        return f"{now}; it did not grow in the {span} on record"
    later = size_words(growth.size + FORECAST_DAYS * growth.per_day)
    rate = f"at the rate of the {span} on record, {size_words(growth.per_day)} more each day"
    note = f"; {growth.note}" if growth.note else ""
    return f"{now}; {rate}, {later} in {FORECAST_DAYS} days{note}"
