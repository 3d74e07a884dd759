"""`offsets/N`: what batch N was planned to read up to, written before it runs (Spark's OffsetSeqLog).

After the version: one JSON line with watermark, time and pinned configuration, then one line for each source.
Version 1 has the offsets in the order of the sources; version 2, `name:offset`, in any order. `-` means that a source
had nothing yet.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from faultline.inspector.spark.log import LogError, LogFolder, LogGone, UnknownVersion, misnamed, parse, read_versioned
from faultline.inspector.spark.sources import damage, kind_of, kinds_that_are_known

NAME = re.compile(rb"[A-Za-z0-9_-]+")
"""The name of a source, or its number."""
_PINNED = b',"conf":'
NEWEST = 2
"""The highest version of an offsets file that is known here."""
NO_METADATA = "its line of metadata is missing or blank: without the watermark in it, Spark cannot plan the next batch"


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
    kinds: dict[str, str] = field(default_factory=dict)
    """The kind of each source's offset, by its shape."""


@dataclass
class Offsets:
    """The offsets log: batches by number, what is wrong with those that cannot be read, versions not known here.

    A batch of an unknown version is in `batches` too when its lines read like those of a known one.
    """

    batches: dict[int, PlannedBatch] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)

    @property
    def is_continuous(self) -> bool:
        """Return whether a query with a continuous trigger wrote it: ContinuousExecution.addOffset writes no metadata.

        MicroBatchExecution.markMicroBatchStart writes it into each file.
        """
        return not self.batches and not self.unknown and set(self.errors.values()) == {NO_METADATA}


def read_planned(folder: LogFolder, number: int) -> PlannedBatch:
    """Read one offsets file. Raises LogError."""
    version, lines = read_versioned(folder.path, str(number), NEWEST)
    return _batch(number, version, lines)


def _batch(number: int, version: int, content: list[bytes]) -> PlannedBatch:
    """Read the lines after the version as OffsetSeqLog.deserialize does: a blank line is a source's line, too."""
    metadata, *sources = content or [b""]
    if not metadata.strip():
        raise LogError(NO_METADATA)
    document, configuration = _metadata(metadata)
    if not isinstance(document, dict) or not sources:
        raise LogError("it is cut short: the line of a source is missing")
    ends = _by_name(sources) if version > 1 else {str(at): _offset(line) for at, line in enumerate(sources)}
    return PlannedBatch(
        number=number,
        watermark=_milliseconds(document, "batchWatermarkMs"),
        planned_at=_milliseconds(document, "batchTimestampMs"),
        configuration=configuration,
        ends=ends,
        version=version,
        kinds={name: kind_of(end) for name, end in ends.items()},
    )


def _metadata(line: bytes) -> tuple[Any, dict[str, str]]:
    """Parse the line of metadata: its document, and the pinned configuration in it.

    Spark writes the configuration last, and mostly as the batch before has it: then it is parsed once for all batches,
    which takes a quarter of the time off reading 10,000.
    """
    head, found, rest = line.partition(_PINNED)
    if found and rest.endswith(b"}}"):
        try:
            return parse(head + b"}"), _configuration(rest[:-1])
        except LogError:
            # It is not the last field, or the line is damaged.
            pass
    document = parse(line)
    pinned = document.get("conf") if isinstance(document, dict) else None
    return document, {} if pinned is None else _configuration(json.dumps(pinned).encode())


@lru_cache(maxsize=8)
def _configuration(text: bytes) -> dict[str, str]:
    """Parse the pinned settings. Raises LogError."""
    configuration = parse(text)
    if not isinstance(configuration, dict):
        raise LogError("its pinned configuration (conf) is not a table of settings")
    return {name: str(value) for name, value in configuration.items()}


def _milliseconds(document: dict[str, Any], name: str) -> int:
    """Return a field of the metadata; one that is not there is 0, as OffsetSeqMetadata has it."""
    value = document.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise LogError(f"its {name} is not a number of milliseconds")
    return value


def _by_name(lines: list[bytes]) -> dict[str, Any]:
    """Read `name:offset` lines, sorted: Spark writes them in the order of a hash table."""
    ends = {}
    for line in lines:
        name, colon, offset = line.partition(b":")
        if not colon or not NAME.fullmatch(name):
            raise LogError("it is cut short: a line is not of the form name:offset")
        ends[name.decode()] = _offset(offset)
    return dict(sorted(ends.items(), key=lambda item: (len(item[0]), item[0]) if item[0].isdecimal() else (0, item[0])))


def _offset(line: bytes) -> Any:
    """Parse an offset. Each source writes what it likes: what is not JSON is text that only the source can read.

    Raises LogError for what is no text: the reader of OffsetSeqLog (scala.io.Source) takes UTF-8 alone.
    """
    if line == b"-":
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise LogError("it has bytes that are not UTF-8") from None
    try:
        value = parse(line)
    except LogError:
        return text
    # A line `null` is text of a source as well, and not the mark of a source that had nothing.
    return "null" if value is None else value


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
    _tell_damaged_from_unknown(found, folder)
    found.errors |= misnamed(folder)
    return found


def _tell_damaged_from_unknown(found: Offsets, folder: LogFolder) -> None:
    """Make an error of a batch whose offset is a damaged one of the kind that the source's other offsets have.

    An offset of no known kind is no damage by itself: its source may be one that is not known here. The batch stays,
    since Spark reads the file and leaves the offset to its source.
    """
    kinds: dict[str, set[str]] = {}
    doubtful = []
    for number, batch in found.batches.items():
        for name, kind in batch.kinds.items():
            kinds.setdefault(name, set()).add(kind)
            if kind == "unknown" and number not in found.unknown:
                doubtful.append((number, name))
    known = {
        name: kinds_that_are_known(folder.path.parent, name, kinds[name]) for name in {each for _, each in doubtful}
    }
    for number, name in doubtful:
        why = damage(found.batches[number].ends[name], known[name])
        if why:
            found.errors[number] = f"the offset of source {name} {why}"


def _like(number: int, unknown: UnknownVersion) -> PlannedBatch | None:
    """Read the lines as those of a version that is known; None where they do not fit any."""
    for version in range(NEWEST, 0, -1):
        try:
            batch = _batch(number, version, unknown.lines)
        except LogError:
            continue
        batch.version = unknown.version
        return batch
    return None
