"""The meaning of an offset of each kind of source, and the data between two offsets.

A source is recognized by the shape of its offset: the log does not name it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from faultline.inspector.model import Partition, SourceRange
from faultline.inspector.spark.log import (
    LogError,
    LogFolder,
    list_log,
    misnamed,
    parse,
    read_lines,
    versioned,
)
from faultline.inspector.words import count, ranges, time_words
from faultline.storage.location import Location

PARTITION_DIGITS = 10
"""Digits of the highest number of a partition, 2^31 - 1."""
MOST_ENTRIES = 100_000
"""Entries of a file source's log in one batch up to which their files are named."""
UNKNOWN = "unknown"
"""Start of a batch whose predecessor Spark has deleted (spark.sql.streaming.minBatchesToRetain)."""


NUMBERS = {
    "file": ("logOffset",),
    "delta": ("reservoirVersion", "index"),
    "rate-micro-batch": ("offset", "timestamp"),
}
"""Fields that are whole numbers, by kind of offset."""
BY_FIELDS = {frozenset({"offset", "timestamp"}): "rate-micro-batch"}
DELTA_AFTER_ALL = 2**63 - 200
"""Positions from here on are after the last action of a version (DeltaSourceOffset.END_INDEX)."""


class ForeignFile(LogError):
    """A file of a source has not what the source that the offsets look like writes there."""


def kind_of(offset: Any) -> str:
    """Kafka, file, delta, rate-micro-batch, counter, none or unknown: by the shape, and by the types of the fields.

    A counter is a plain number: of the rate source, the socket source, the file source of Spark 2.0, or of any other.
    """
    if offset is None:
        return "none"
    if isinstance(offset, int) and not isinstance(offset, bool):
        return "counter" if abs(offset) < 2**63 else "unknown"
    shape = _shape(offset)
    if shape == "kafka":
        # JsonUtils.partitionOffsets: topics, partitions, offsets.
        sound = all(
            isinstance(partitions, dict)
            and all(
                type(value) is int and abs(value) < 2**63 and _is_partition(key) for key, value in partitions.items()
            )
            for partitions in offset.values()
        )
    else:
        sound = all(type(offset.get(name)) is int and abs(offset[name]) < 2**63 for name in NUMBERS.get(shape, ()))
    return shape if sound else "unknown"


def fits(offset: Any, kind: str) -> bool:
    """Return whether an offset is of a kind: Kafka's is {} where a pattern of topics matched none."""
    return kind_of(offset) == kind or (kind == "kafka" and offset == {})


def _is_partition(key: str) -> bool:
    return len(key) <= PARTITION_DIGITS and key.isascii() and key.isdecimal()


def _shape(offset: Any) -> str:
    """The kind that an offset looks like, whatever its values are."""
    if not isinstance(offset, dict) or not offset:
        return "unknown"
    if all(isinstance(partitions, dict) for partitions in offset.values()):
        return "kafka"
    if "logOffset" in offset:
        # FileStreamSourceOffset.apply leaves other fields aside.
        return "file"
    return "delta" if "reservoirId" in offset else BY_FIELDS.get(frozenset(offset), "unknown")


def kinds_that_are_known(checkpoint: Location, source: str, kinds: set[str]) -> set[str]:
    """Leave out of the kinds of a source's offsets what does not tell the connector: Kafka's needs its start."""
    known = kinds & {"kafka", "file", "delta", "rate-micro-batch"}
    try:
        if initial_offset(checkpoint, source, "kafka") is not None:
            return known
    except (LogError, OSError):
        pass
    return known - {"kafka"}


def damage(offset: Any, kinds: set[str]) -> str:
    """Say what is wrong with an offset of a source that is of one of these kinds; empty when nothing is."""
    if kind_of(offset) != "unknown" or not kinds:
        return ""
    if isinstance(offset, str):
        return "is cut short or not JSON" if offset.startswith("{") else ""
    return "has a field of the wrong kind" if _shape(offset) in kinds else ""


def source_folder(checkpoint: Location, source: str, kind: str) -> Location:
    """The folder of a source below `sources/`, by its number or name.

    Spark 4.2 names the folders of named sources and numbers their offsets: then the only folder of the kind is taken.
    """
    folder = checkpoint / "sources" / source
    fitting = named_folders(checkpoint, source, kind)
    return fitting[0] if len(fitting) == 1 else folder


def one_log_of_many(batches: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether two file sources have been at one offset in each of these batches, given by their offsets.

    They may be one source that the query reads twice: it then has one log for both, and the logs of the sources behind
    it have other numbers (MicroBatchExecution.logicalPlan makes a source for each distinct relation).
    """
    newest = batches[-1]
    files = [name for name, end in newest.items() if name.isdecimal() and kind_of(end) == "file"]
    return any(all(each.get(one) == each.get(other) for each in batches) for one, other in combinations(files, 2))


def named_folders(checkpoint: Location, source: str, kind: str) -> list[Location]:
    """List the folders below `sources/` that may be those of a source that has no folder of its number."""
    folder = checkpoint / "sources" / source
    if folder.is_dir() or not source.isdecimal() or not folder.parent.is_dir():
        return []
    named = [each for each in folder.parent.iterdir() if each.is_dir() and not each.name.isdecimal()]
    return sorted(each for each in named if _kind_of_log(each) == kind)


def _kind_of_log(folder: Location) -> str:
    """The kind of source that writes this log: a file source lists paths, Kafka and rate keep where they started."""
    log = list_log(folder)
    names = [str(number) for number in log.numbers] + [f"{number}.compact" for number in log.compact]
    try:
        entry = parse(read_lines(folder, names[0])[0]) if names else None
    except (LogError, IndexError):
        return "unknown"
    return "file" if isinstance(entry, dict) and "path" in entry else kind_of(entry)


def initial_offset(checkpoint: Location, source: str, kind: str) -> Any:
    """`sources/N/0`: where a Kafka source started, or when a rate source did; None when there is none.

    Raises LogError when the file is damaged, ForeignFile when it is of another source than the offsets look like.
    """
    folder = source_folder(checkpoint, source, kind)
    # The log of a file source has another meaning, and what other sources keep there only they can read.
    if kind not in ("kafka", "counter") or not (folder / "0").is_file():
        return None
    # Kafka's begins with a byte 0, for readers of Spark 2.1 (KafkaSourceInitialOffsetWriter).
    content = (folder / "0").read_bytes().removeprefix(b"\0")
    if not content:
        raise LogError("it is empty")
    # Spark 2.1 wrote no version.
    found = parse(b"\n".join(versioned(content, 1)[1]) if content.startswith(b"v") else content)
    if not fits(found, kind):
        raise ForeignFile("it does not say where such a source began: another source may have written it")
    return found


def kafka_partitions(start: Any, end: Any) -> list[Partition]:
    """Ranges of every topic and partition of two Kafka offsets; a start that is not on record is None."""
    found = []
    for topic in sorted(end):
        for partition, offset in sorted(end[topic].items(), key=lambda item: int(item[0])):
            first = start.get(topic, {}).get(partition) if kind_of(start) == "kafka" else None
            found.append(Partition(topic, int(partition), first, offset))
    return found


def _kafka(source: str, start: Any, end: Any, initial: Any) -> SourceRange:
    partitions = kafka_partitions(initial if start is None else start, end)
    rows = [each.rows for each in partitions]
    total = "" if None in rows else f" ({count(sum(filter(None, rows)), 'row')})"
    topics = ", ".join(sorted(end))
    # A Kafka source keeps where it began (KafkaSourceInitialOffsetWriter); other connectors write offsets like these.
    name = (
        "Kafka topic"
        if initial is not None
        else f"source {source} looks like Kafka's, the connector is not known: topic"
    )
    return SourceRange("kafka", f"{name} {topics}: {ranges(partitions)}{total}", partitions)


def file_entries(checkpoint: Location, source: str, first: int, last: int) -> list[str]:
    """Paths that the file source logged as `first` to `last`, also from a compact file (FileStreamSourceLog.get).

    Raises LogError when a file of the log is damaged, or does not have one of the entries.
    """
    log = list_log(source_folder(checkpoint, source, "file"))
    valid = log.valid()
    folded: list[dict[str, Any]] | None = None
    paths = []
    for number in range(first, last + 1):
        if log.has(number):
            entries = log_entries(log, number)
        else:
            if folded is None:
                folded = log_entries(log, valid[0]) if valid and log.has(valid[0]) else []
            entries = folded
        found = [entry["path"] for entry in entries if entry.get("batchId", number) == number]
        if not found and not log.has(number):
            raise LogError(f"sources/{source} has neither {number} nor a compact file that holds it")
        paths += found
    return paths


def log_entries(log: LogFolder, number: int) -> list[dict[str, Any]]:
    """Read the entries of a compactible log under a number. Raises LogError, which names the file."""
    name = log.file(number)
    try:
        entries = [parse(line) for line in read_lines(log.path, name)]
        if not all(isinstance(entry, dict) and isinstance(entry.get("path"), str) for entry in entries):
            raise LogError("an entry of it names no file")
    except LogError as error:
        error.args = (f"{log.path / name} cannot be read: {error}",)
        raise
    return entries


def file_source_fails(checkpoint: Location, source: str, start: Any, end: Any) -> str:
    """Say why a file source cannot start between two offsets; empty when it can.

    The constructor of FileStreamSource reads the whole log (restore), and getBatch the entries after `start` up to
    `end`, also when the batch is committed (MicroBatchExecution.populateStartOffsets). `start` may be a plain number
    (FileStreamSourceOffset.apply). Raises LogError when a file of the log cannot be read.
    """
    last = end["logOffset"]
    kind = kind_of(start)
    if kind not in ("none", "counter", "file"):
        return f"the file source {source} cannot read the offset {json.dumps(start)}, from which its batch starts"
    first = -1 if start is None else start["logOffset"] if kind == "file" else start
    if first > last:
        return f"the file source {source} goes from log offset {first} back to {last}, which it refuses"
    if len(named_folders(checkpoint, source, "file")) > 1:
        return ""
    log = list_log(source_folder(checkpoint, source, "file"))
    return next(iter(misnamed(log).values()), "") or _lacks(log, first, last)


def _lacks(log: LogFolder, first: int, last: int) -> str:
    """Say what a file source's log lacks of itself, and of the entries after `first` up to `last`. Raises LogError."""
    there = [number for number in log.valid() if log.has(number)]
    whole = [log_entries(log, number) for number in there]
    if any(not isinstance(entry.get("timestamp"), int) for entries in whole for entry in entries):
        # FileEntry has no default for it.
        return f"{log.path} has an entry without a timestamp, and the file source reads its whole log first of all"
    gone = [number for number in log.valid() if not log.has(number)]
    if gone:
        return f"{log.path / log.file(gone[0])} doesn't exist, and the file source reads its whole log first of all"
    if last - first > MOST_ENTRIES:
        return ""
    missing = [each for each in range(first + 1, last + 1) if not log.has(each)]
    folded = (
        {entry["batchId"] for entry in whole[0] if type(entry.get("batchId")) is int} if missing and whole else set()
    )
    lacking = [each for each in missing if each not in folded]
    if lacking:
        return f"{log.path / log.file(lacking[0])} doesn't exist: batch {lacking[0]} of the log"
    # FileStreamSource.fetchMaxOffset counts on from its log, and getBatch refuses an end before the start.
    if log.latest + 1 < last:
        return f"{log.path} ends with entry {log.latest}, and the offsets are at {last}: the next batch goes back"
    return ""


def _files(checkpoint: Location, source: str, start: Any, end: Any) -> SourceRange:
    last = end["logOffset"]
    kind = kind_of(start)
    # A start that was deleted, or is of another source, leaves the last entry to name.
    before = {"file": start, "none": {"logOffset": -1}, "counter": {"logOffset": start}}.get(kind)
    first = last if before is None else max(before["logOffset"], -1) + 1
    found = SourceRange("file", "", facts={"log offset": str(last)})
    if last - first > MOST_ENTRIES:
        found.words = f"files: log offset {last}, from {first} on"
        return found
    try:
        found.files = file_entries(checkpoint, source, first, last)
    except LogError as error:
        found.words = f"files: log offset {last}; {error}"
        return found
    names = ", ".join(PurePosixPath(path).name for path in found.files[:5])
    more = f" and {count(len(found.files) - 5, 'more file')}" if len(found.files) > 5 else ""
    found.words = f"files: log offset {last}, {names}{more}" if names else f"files: no new file (log offset {last})"
    return found


def delta_position(end: Any) -> str:
    """Say up to where a Delta source has read (DeltaSourceOffset).

    A negative index (BASE_INDEX: -1, -100 from version 3 on) is before the first action of the version.
    """
    version, index = end["reservoirVersion"], end["index"]
    if end.get("isStartingVersion"):
        return f"within the table's first snapshot, version {version}, up to its file {index}"
    if index < 0:
        return f"all versions before {version}, nothing of version {version} yet"
    if index >= DELTA_AFTER_ALL:
        return f"all versions up to {version}"
    return f"all versions before {version}, and of version {version} the actions up to index {index}"


def _delta(end: Any) -> SourceRange:
    version, index = end["reservoirVersion"], end["index"]
    initial = bool(end.get("isStartingVersion"))
    facts = {
        "reservoirId": f"{end['reservoirId']} (the id of the Delta table)",
        "reservoirVersion": f"{version} (the table version that is read next or in part)",
        "index": f"{index} ({'before the first' if index < 0 else 'last read'} action in that version)",
        "isStartingVersion": f"{str(initial).lower()} ({'the first snapshot' if initial else 'changes after it'})",
    }
    return SourceRange("delta", f"Delta table: {delta_position(end)}", facts=facts)


def _number(source: str, start: Any, end: int, initial: Any) -> SourceRange:
    if kind_of(initial) == "counter":
        facts = {"started at": time_words(initial)}
        begin = f"from second {start or 0} " if kind_of(start) in ("counter", "none") else ""
        return SourceRange("rate", f"rate source: {begin}to second {end} since its start", facts=facts)
    return SourceRange("unknown", f"source {source}: the number {end}, of a source that is not known here")


def _rate_micro_batch(start: Any, end: Any) -> SourceRange:
    first = start["offset"] if kind_of(start) == "rate-micro-batch" else 0
    words = f"rate-micro-batch: from value {first} to {end['offset']}, up to {time_words(end['timestamp'])}"
    return SourceRange("rate-micro-batch", words)


def explain(checkpoint: Location, source: str, start: Any, end: Any, initial: Any) -> SourceRange:
    """Say what a source gives between two of its offsets; a source with a name is called by it.

    `start` is None for the source's beginning, UNKNOWN where it was deleted; `end` None: nothing was there yet.
    """
    found = _explain(checkpoint, source, start, end, initial)
    if not source.isdecimal():
        found.name = source
        found.words = f"{source}: {found.words}"
    return found


def _explain(checkpoint: Location, source: str, start: Any, end: Any, initial: Any) -> SourceRange:
    if end is None:
        return SourceRange("none", f"source {source}: nothing yet")
    explained = {
        "kafka": lambda: _kafka(source, start, end, initial),
        "file": lambda: _files(checkpoint, source, start, end),
        "delta": lambda: _delta(end),
        "counter": lambda: _number(source, start, end, initial),
        "rate-micro-batch": lambda: _rate_micro_batch(start, end),
    }.get(kind_of(end))
    return explained() if explained else SourceRange("unknown", f"source {source}: {unknown_offset(end)}")


def unknown_offset(offset: Any) -> str:
    """Say an offset that only its own source can read."""
    return f"offset {json.dumps(offset)} of a kind that is not known here ({count(len(json.dumps(offset)), 'byte')})"
