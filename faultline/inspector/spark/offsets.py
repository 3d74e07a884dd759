"""`offsets/N`: what batch N was planned to read up to, written before it runs (Spark's OffsetSeqLog).

After the version: one JSON line with watermark, time and pinned configuration, then one line for each source.
Version 1 has the offsets in the order of the sources; version 2, `name:offset`, in any order. `-` means that a source
had nothing yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from faultline.inspector.spark.log import LogError, LogFolder, LogGone, UnknownVersion, parse, read_versioned
from faultline.inspector.spark.sources import is_sound

NEWEST = 2
"""The highest version of an offsets file that is known here."""


@dataclass(slots=True)
class PlannedBatch:
    """One offsets file. `ends`: the end offset of each source as parsed JSON, None for `-`.

    A source is listed by its number, or by its name where the query gave it one. `watermark` and `planned_at` in
    milliseconds since the epoch; 0 means no watermark.
    """

    number: int
    watermark: int
    planned_at: int
    configuration: dict[str, str]
    ends: dict[str, Any]
    version: int = 1


@dataclass
class Offsets:
    """The offsets log: batches by number, what is wrong with those that cannot be read, versions not known here.

    A batch of an unknown version is in `batches` too when its lines read like those of a known one.
    """

    batches: dict[int, PlannedBatch] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)


def read_planned(folder: LogFolder, number: int) -> PlannedBatch:
    """Read one offsets file. Raises LogError."""
    version, lines = read_versioned(folder.path, str(number), NEWEST)
    return _batch(number, version, lines)


def _batch(number: int, version: int, content: list[bytes]) -> PlannedBatch:
    metadata, *sources = [line for line in content if line] or [b""]
    document = parse(metadata)
    if not isinstance(document, dict) or not sources:
        raise LogError("it is cut short: the line of a source is missing")
    try:
        batch = PlannedBatch(
            number=number,
            watermark=int(document["batchWatermarkMs"]),
            planned_at=int(document["batchTimestampMs"]),
            configuration=document.get("conf", {}),
            ends=_by_name(sources) if version > 1 else {str(at): _offset(line) for at, line in enumerate(sources)},
            version=version,
        )
    except (KeyError, TypeError, ValueError):
        raise LogError("its second line lacks batchWatermarkMs or batchTimestampMs") from None
    if not isinstance(batch.configuration, dict):
        raise LogError("its pinned configuration (conf) is not a table of settings")
    for name, end in batch.ends.items():
        if not is_sound(end):
            raise LogError(f"the offset of source {name} has a field of the wrong kind")
    return batch


def _by_name(lines: list[bytes]) -> dict[str, Any]:
    """Read `name:offset` lines, sorted: Spark writes them in the order of a hash table."""
    ends = {}
    for line in lines:
        name, colon, offset = line.partition(b":")
        if not colon or not name or not name.replace(b"_", b"").replace(b"-", b"").isalnum():
            raise LogError("it is cut short: a line is not of the form name:offset")
        ends[name.decode()] = _offset(offset)
    return dict(sorted(ends.items(), key=lambda item: (len(item[0]), item[0]) if item[0].isdecimal() else (0, item[0])))


def _offset(line: bytes) -> Any:
    """Parse an offset. A custom source may write any text; text that begins like JSON is JSON, whole or cut short."""
    if line == b"-":
        return None
    return parse(line) if line[:1] in b'{["-0123456789' else line.decode(errors="replace")


def read_all(folder: LogFolder) -> Offsets:
    """Read every offsets file.

    A file that a running query deleted meanwhile is taken out of `folder`, as if it had been listed a moment later.
    """
    found = Offsets()
    for number in list(folder.numbers):
        try:
            found.batches[number] = read_planned(folder, number)
        except LogGone:
            folder.numbers.remove(number)
        except UnknownVersion as error:
            found.unknown[number] = str(error)
            like = _like(number, error)
            if like is not None:
                found.batches[number] = like
        except LogError as error:
            found.errors[number] = str(error)
    return found


def _like(number: int, unknown: UnknownVersion) -> PlannedBatch | None:
    """Read the lines as those of a version that is known; None where they do not fit any."""
    for version in range(NEWEST, 0, -1):
        try:
            batch = _batch(number, version, unknown.lines)
        except (LogError, UnicodeDecodeError):
            continue
        batch.version = unknown.version
        return batch
    return None
