"""Progress of a Spark query, from its checkpoint: the end offsets of the newest committed batch."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass

from faultline.formats.visit import iso_time
from faultline.storage.batches import newest_batch
from faultline.storage.location import Location
from faultline.verdict.model import Unknown
from faultline.verdict.records import Spans


@dataclass(frozen=True)
class Commit:
    """The newest committed batch: its id, where it ends in each partition of the topic (exclusive), and when."""

    batch: int
    ends: dict[int, int]
    at: str


def newest_commit(checkpoint: Location, topic: str) -> Commit | None:
    """Read the newest committed batch of a query, or None when no batch was committed yet.

    `commits/N` means that batch N is committed, `offsets/N` has its end: a line `v1`, a line of metadata, then
    one line per source, for Kafka `{"<topic>": {"<partition>": <end offset>}}`.
    (Spark's OffsetSeqLog and CommitLog.) Raises Unknown when these files cannot be read.
    """
    commits = checkpoint / "commits"
    try:
        newest = newest_batch(commits)
        if newest is None:
            return None
        file = commits / str(newest)
        if not read_log(file).startswith("v"):
            raise Unknown(f"{file} is not a commit log; Spark writes it whole, so the checkpoint is damaged")
        at = iso_time(int(file.stat().st_mtime * 1000))
        return Commit(newest, _end_offsets(checkpoint / "offsets" / str(newest), topic), at)
    except OSError as error:
        raise Unknown(f"checkpoint {checkpoint} cannot be read: {error.strerror} ({error.filename})") from None


def read_log(file: Location) -> str:
    """Read a small file that Spark wrote. Raises OSError, and Unknown when it is not a file or not text."""
    if not stat.S_ISREG(file.stat().st_mode):
        # Opening a named pipe would wait forever.
        raise Unknown(f"{file} is not a file")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unknown(f"{file} is damaged: it is not text") from None


def refuse_foreign(checkpoint: Location, commit: Commit, topic: str, source: Spans) -> None:
    """Raise Unknown when a checkpoint has read beyond the end of the topic."""
    for partition, end in commit.ends.items():
        if partition not in source or end > source[partition].end:
            held = source[partition].end if partition in source else 0
            raise Unknown(
                f"{checkpoint} has committed partition {partition} of {topic} up to offset {end}, but the topic has "
                f"{held}: it is not the topic that was read; start clean (scripts/down.sh --wipe)"
            )


def _end_offsets(file: Location, topic: str) -> dict[int, int]:
    lines = read_log(file).splitlines()
    if not lines or lines[0] != "v1":
        raise Unknown(f"{file} is not an offset log of version v1; is it the checkpoint of a Spark query?")
    ends: dict[int, int] = {}
    for line in lines[2:]:
        if line == "-":  # a source that had nothing yet
            continue
        try:
            of_topic = json.loads(line).get(topic, {})
            if not all(type(end) is int and end >= 0 for end in of_topic.values()):
                raise ValueError
            ends |= {int(partition): end for partition, end in of_topic.items()}
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise Unknown(f"{file} has a line that is not the offsets of a Kafka source: {line[:80]}") from None
    if not ends:
        raise Unknown(f"{file} names no offsets of topic {topic}; is it the checkpoint of another query?")
    return ends
