"""How far a Spark query has committed, from its checkpoint: the end offsets of the newest committed batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from verdict.model import Unknown


@dataclass(frozen=True)
class Commit:
    """The newest committed batch: its id, and where it ends in each partition of the topic (exclusive)."""

    batch: int
    ends: dict[int, int]


def newest_commit(checkpoint: Path, topic: str) -> Commit | None:
    """Read the newest committed batch of a query, or None when no batch was committed yet.

    `commits/N` says that batch N is done, `offsets/N` where it ends: a line `v1`, a line of metadata, then
    one line a source, for Kafka `{"<topic>": {"<partition>": <end offset>}}`.
    (Spark's OffsetSeqLog and CommitLog.) Raises Unknown when these files cannot be read.
    """
    commits = checkpoint / "commits"
    try:
        batches = [int(file.name) for file in commits.iterdir() if file.name.isdecimal()] if commits.is_dir() else []
        if not batches:
            return None
        newest = max(batches)
        return Commit(newest, _end_offsets(checkpoint / "offsets" / str(newest), topic))
    except OSError as error:
        raise Unknown(f"checkpoint {checkpoint} cannot be read: {error.strerror} ({error.filename})") from None


def _end_offsets(file: Path, topic: str) -> dict[int, int]:
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "v1":
        raise Unknown(f"{file} is not an offset log of version v1; is it the checkpoint of a Spark query?")
    ends: dict[int, int] = {}
    for line in lines[2:]:
        if line == "-":  # a source that had nothing yet
            continue
        try:
            ends |= {int(partition): int(end) for partition, end in json.loads(line).get(topic, {}).items()}
        except (ValueError, AttributeError, TypeError):
            raise Unknown(f"{file} has a line that is not the offsets of a Kafka source: {line[:80]}") from None
    if not ends:
        raise Unknown(f"{file} names no offsets of topic {topic}; is it the checkpoint of another query?")
    return ends
