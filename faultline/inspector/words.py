"""Figures as text: times, offsets, ranges, sizes. In one module, so that reports on both engines read alike."""

from __future__ import annotations

from collections.abc import Iterable

from faultline.formats.visit import iso_time
from faultline.inspector.model import Partition

MARKERS = {-1: "latest", -2: "earliest", -3: "the group's committed offset"}
"""Offsets that are a word rather than a number, the same in Spark and in Flink's Kafka source except for -3."""

FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
"""Years 0001 to 9999: what a date can express; engines use values outside for 'none yet'."""


def offset_words(offset: int | None) -> str:
    """`900`, `earliest`, or `an unknown offset`."""
    if offset is None:
        return "an unknown offset"
    return MARKERS.get(offset, str(offset))


def time_words(milliseconds: int | None) -> str:
    """UTC in ISO 8601; `none yet` for what is not a date (an engine's minimum watermark)."""
    if milliseconds is None or not FIRST_TIME <= milliseconds <= LAST_TIME:
        return "none yet"
    return iso_time(milliseconds)


def count(number: int, noun: str) -> str:
    """`1 row`, `2 rows`, `2 batches`."""
    plural = noun[:-1] + "ies" if noun.endswith("ry") else noun + ("es" if noun.endswith(("ch", "s", "x")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def size_words(size: int) -> str:
    """Bytes up to 10 KiB, then KiB, MiB or GiB with one digit."""
    if size < 10 * 1024:
        return count(size, "byte")
    for power, unit in ((1, "KiB"), (2, "MiB")):
        if size < 1024 ** (power + 1):
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size / 1024**3:,.1f} GiB"


def age_words(seconds: float) -> str:
    """`40 s`, `12 min`, `5 h`, `3 d`."""
    for limit, unit, divisor in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / divisor:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def _named(partitions: list[Partition], partition: Partition) -> str:
    one_topic = len({each.topic for each in partitions}) <= 1
    return f"partition {partition.partition}" if one_topic else f"{partition.topic} partition {partition.partition}"


def ranges(partitions: Iterable[Partition]) -> str:
    """`partition 0 from 1150 to 1224, partition 1 from 1204 to 1276`; the topic is named when there are several."""
    listed = list(partitions)
    return ", ".join(
        f"{_named(listed, each)} from {offset_words(each.start)} to {offset_words(each.end)}" for each in listed
    )


def positions(partitions: Iterable[Partition]) -> str:
    """`partition 0 at 900, partition 1 at 900`."""
    listed = list(partitions)
    return ", ".join(f"{_named(listed, each)} at {offset_words(each.start)}" for each in listed)
