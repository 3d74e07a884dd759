"""`offsets/N`: what batch N was planned to read up to, written before it runs (Spark's OffsetSeqLog).

After the version: one JSON line with watermark, time and pinned configuration, then one line for each source,
`-` where a source had nothing yet (OffsetSeqLog.scala).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inspector.spark.log import LogError, LogFolder, LogGone, parse, read_lines
from inspector.spark.sources import is_sound


@dataclass(slots=True)
class PlannedBatch:
    """One offsets file. `ends`: one entry a source, its end offset as parsed JSON, None for `-`.

    `watermark` and `planned_at` in milliseconds since the epoch; 0 is Spark's word for no watermark.
    """

    number: int
    watermark: int
    planned_at: int
    configuration: dict[str, str]
    ends: list[Any]


def read_planned(folder: LogFolder, number: int) -> PlannedBatch:
    """Read one offsets file. Raises LogError."""
    metadata, *sources = [line for line in read_lines(f"{folder.path}/{number}") if line] or [b""]
    document = parse(metadata)
    if not isinstance(document, dict) or not sources:
        raise LogError("it is cut short: the line of a source is missing")
    try:
        batch = PlannedBatch(
            number=number,
            watermark=int(document["batchWatermarkMs"]),
            planned_at=int(document["batchTimestampMs"]),
            configuration=document.get("conf", {}),
            ends=[None if line == b"-" else parse(line) for line in sources],
        )
    except (KeyError, TypeError, ValueError):
        raise LogError("its second line lacks batchWatermarkMs or batchTimestampMs") from None
    if not isinstance(batch.configuration, dict):
        raise LogError("its pinned configuration (conf) is not a table of settings")
    for position, end in enumerate(batch.ends):
        if not is_sound(end):
            raise LogError(f"the offset of source {position} has a field of the wrong kind")
    return batch


def read_all(folder: LogFolder) -> tuple[dict[int, PlannedBatch], dict[int, str]]:
    """Read every offsets file: batches by number, and what is wrong with those that cannot be read.

    A file that a running query deleted meanwhile is taken out of `folder`, as if it had been listed a moment later.
    """
    batches: dict[int, PlannedBatch] = {}
    errors: dict[int, str] = {}
    for number in list(folder.numbers):
        try:
            batches[number] = read_planned(folder, number)
        except LogGone:
            folder.numbers.remove(number)
        except LogError as error:
            errors[number] = str(error)
    return batches, errors
