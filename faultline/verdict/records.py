"""Records of a topic as the judge reads them: columns of one batch, from any reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from faultline.formats.digest import record_digest

Headers = Sequence[tuple[str, bytes | None]]
UNREADABLE: Headers = (("\ufffd", None),)
"""Headers with a name that is not UTF-8; no program of the project writes such a name."""


@dataclass(frozen=True)
class Span:
    """Offsets of one partition: `begin` is the first, `end` is after the last."""

    begin: int
    end: int


Spans = dict[int, Span]
"""The span of each partition of one topic."""


def size(spans: Spans) -> int:
    """Count the offsets in a topic's spans; transaction markers count too."""
    return sum(span.end - span.begin for span in spans.values())


class Record(NamedTuple):
    """One record; `timestamp` in milliseconds since the epoch."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers = ()


@dataclass(frozen=True)
class Batch:
    """Columns of some records; within a partition in the order of offsets."""

    partitions: list[int]
    offsets: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps: list[int]
    headers: list[Headers]

    def __len__(self) -> int:
        return len(self.partitions)

    @cached_property
    def digests(self) -> list[bytes]:
        """The digest of each record's key and value; several readings of one batch need them."""
        return list(map(record_digest, self.keys, self.values))

    def records(self) -> Iterator[Record]:
        """Yield the records one by one."""
        return map(Record, self.partitions, self.offsets, self.keys, self.values, self.timestamps, self.headers)


def batch_of(records: Iterable[Record]) -> Batch:
    """Make a batch of records."""
    batch = Batch([], [], [], [], [], [])
    for record in records:
        batch.partitions.append(record.partition)
        batch.offsets.append(record.offset)
        batch.keys.append(record.key)
        batch.values.append(record.value)
        batch.timestamps.append(record.timestamp)
        batch.headers.append(record.headers)
    return batch
