"""The meaning of an offset of each kind of source, and the data between two offsets.

A source is recognized by the shape of its offset: the log does not name it.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from faultline.inspector.model import Partition, SourceRange
from faultline.inspector.spark.log import LogError, list_log, parse, read_lines
from faultline.inspector.words import count, ranges, time_words
from faultline.storage.place import Place

UNKNOWN = "unknown"
"""Start of a batch whose predecessor Spark has deleted (spark.sql.streaming.minBatchesToRetain)."""


def kind_of(offset: Any) -> str:
    """Kafka, file, delta, rate-micro-batch, counter (rate, socket) or unknown."""
    if isinstance(offset, int) and not isinstance(offset, bool):
        return "counter"
    if not isinstance(offset, dict) or not offset:
        return "unknown"
    if all(isinstance(partitions, dict) for partitions in offset.values()):
        return "kafka"
    if "reservoirId" in offset:
        return "delta"
    by_fields = {frozenset({"logOffset"}): "file", frozenset({"offset", "timestamp"}): "rate-micro-batch"}
    return by_fields.get(frozenset(offset), "unknown")


NUMBERS = {
    "file": ("logOffset",),
    "delta": ("reservoirVersion", "index"),
    "rate-micro-batch": ("offset", "timestamp"),
}
"""Fields that are whole numbers, by kind of offset."""


def is_sound(offset: Any) -> bool:
    """Return whether the fields of an offset have the types that its source writes."""
    kind = kind_of(offset)
    if kind == "kafka":
        return all(
            type(number) is int and partition.isdecimal()
            for partitions in offset.values()
            for partition, number in partitions.items()
        )
    return all(type(offset.get(name)) is int for name in NUMBERS.get(kind, ()))


def source_folder(checkpoint: Place, source: str, kind: str) -> Place:
    """The folder of a source below `sources/`, by its number or name.

    Spark 4.2 names the folders of named sources and numbers their offsets: then the only folder of the kind is taken.
    """
    folder = checkpoint / "sources" / source
    if folder.is_dir() or not source.isdecimal() or not folder.parent.is_dir():
        return folder
    named = [each for each in folder.parent.iterdir() if each.is_dir() and not each.name.isdecimal()]
    fitting = [each for each in named if _kind_of_log(each) == kind]
    return fitting[0] if len(fitting) == 1 else folder


def _kind_of_log(folder: Place) -> str:
    """The kind of source that writes this log: a file source lists paths, Kafka and rate keep where they started."""
    log = list_log(folder)
    names = [str(number) for number in log.numbers] + [f"{number}.compact" for number in log.compact]
    try:
        entry = parse(read_lines(folder, names[0])[0]) if names else None
    except (LogError, IndexError):
        return "unknown"
    return "file" if isinstance(entry, dict) and "path" in entry else kind_of(entry)


def initial_offset(checkpoint: Place, source: str, kind: str) -> Any:
    """`sources/N/0`: where a Kafka source started, or when a rate source did; None when there is none.

    Raises LogError when the file is damaged.
    """
    folder = source_folder(checkpoint, source, kind)
    # The log of a file source has another meaning, and what other sources keep there only they can read.
    if kind not in ("kafka", "counter") or not (folder / "0").exists():
        return None
    return parse(b"\n".join(read_lines(folder, "0")))


def kafka_partitions(start: Any, end: Any) -> list[Partition]:
    """Ranges of every topic and partition of two Kafka offsets; a start that is not on record is None."""
    found = []
    for topic in sorted(end):
        for partition, offset in sorted(end[topic].items(), key=lambda item: int(item[0])):
            first = start.get(topic, {}).get(partition) if isinstance(start, dict) else None
            found.append(Partition(topic, int(partition), first, offset))
    return found


def _kafka(start: Any, end: Any) -> SourceRange:
    partitions = kafka_partitions(start, end)
    rows = [each.rows for each in partitions]
    total = "" if None in rows else f" ({count(sum(filter(None, rows)), 'row')})"
    topics = ", ".join(sorted(end))
    return SourceRange("kafka", f"Kafka topic {topics}: {ranges(partitions)}{total}", partitions)


def file_entries(checkpoint: Place, source: str, first: int, last: int) -> list[str]:
    """Paths that the file source logged as `first` to `last`, also from a compact file.

    Raises LogError when a file of the log is damaged.
    """
    log = list_log(source_folder(checkpoint, source, "file"))
    paths = []
    for number in range(first, last + 1):
        if number in log.numbers:
            lines = read_lines(log.path, str(number))
        else:
            folded = next((each for each in log.compact if each >= number), None)
            if folded is None:
                raise LogError(f"sources/{source} has neither {number} nor a compact file that holds it")
            lines = read_lines(log.path, f"{folded}.compact")
        entries = [parse(line) for line in lines if line]
        paths += [entry["path"] for entry in entries if entry.get("batchId", number) == number]
    return paths


def _files(checkpoint: Place, source: str, start: Any, end: Any) -> SourceRange:
    last = end["logOffset"]
    first = start["logOffset"] + 1 if isinstance(start, dict) else (last if start == UNKNOWN else 0)
    found = SourceRange("file", "", facts={"log offset": str(last)})
    try:
        found.files = file_entries(checkpoint, source, first, last)
    except LogError as error:
        found.words = f"files: log offset {last}; {error}"
        return found
    names = ", ".join(PurePosixPath(path).name for path in found.files[:5])
    more = f" and {count(len(found.files) - 5, 'more file')}" if len(found.files) > 5 else ""
    found.words = f"files: log offset {last}, {names}{more}" if names else f"files: no new file (log offset {last})"
    return found


def _delta(end: Any) -> SourceRange:
    version, index = end["reservoirVersion"], end["index"]
    initial = bool(end.get("isStartingVersion"))
    # DeltaSourceOffset.scala: index -1 (BASE_INDEX, -100 from version 3 on) is before the first action.
    if initial:
        words = f"within the table's first snapshot, version {version}, up to its file {index}"
    elif index < 0:
        words = f"all versions before {version}, nothing of version {version} yet"
    else:
        words = f"all versions before {version}, and of version {version} the actions up to index {index}"
    facts = {
        "reservoirId": f"{end['reservoirId']} (the id of the Delta table)",
        "reservoirVersion": f"{version} (the table version that is read next or in part)",
        "index": f"{index} ({'before the first' if index < 0 else 'last read'} action in that version)",
        "isStartingVersion": f"{str(initial).lower()} ({'the first snapshot' if initial else 'changes after it'})",
    }
    return SourceRange("delta", f"Delta table: {words}", facts=facts)


def _counter(start: Any, end: int, initial: Any) -> SourceRange:
    if isinstance(initial, int):
        facts = {"started at": time_words(initial)}
        begin = "" if start == UNKNOWN else f"from second {start or 0} "
        return SourceRange("rate", f"rate source: {begin}to second {end} since its start", facts=facts)
    begin = "" if start == UNKNOWN else f"from {start or 0} "
    return SourceRange("counter", f"counter (rate or socket): {begin}to {end}")


def _rate_micro_batch(start: Any, end: Any) -> SourceRange:
    first = start["offset"] if isinstance(start, dict) else (start or 0)
    words = f"rate-micro-batch: from value {first} to {end['offset']}, up to {time_words(end['timestamp'])}"
    return SourceRange("rate-micro-batch", words)


def explain(checkpoint: Place, source: str, start: Any, end: Any, initial: Any) -> SourceRange:
    """Say what a source gives between two of its offsets; a source with a name is called by it.

    `start` is None for the source's beginning, UNKNOWN where it was deleted; `end` None: nothing was there yet.
    """
    found = _explain(checkpoint, source, start, end, initial)
    if not source.isdecimal():
        found.name = source
        found.words = f"{source}: {found.words}"
    return found


def _explain(checkpoint: Place, source: str, start: Any, end: Any, initial: Any) -> SourceRange:
    if end is None:
        return SourceRange("none", f"source {source}: nothing yet")
    explained = {
        "kafka": lambda: _kafka(start if start is not None else initial, end),
        "file": lambda: _files(checkpoint, source, start, end),
        "delta": lambda: _delta(end),
        "counter": lambda: _counter(start, end, initial),
        "rate-micro-batch": lambda: _rate_micro_batch(start, end),
    }.get(kind_of(end))
    if explained is None:
        return SourceRange("unknown", f"source {source}: offset {json.dumps(end)} of a kind that is not known here")
    return explained()
