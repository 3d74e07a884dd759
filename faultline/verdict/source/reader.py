"""Turns the source topic into a table: place, timestamp and digest of each record; and reads single records again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
from confluent_kafka import KafkaException

from faultline.verdict.loading import Rows, TopicReader
from faultline.verdict.model import Unknown
from faultline.verdict.records import Batch, Record, Span
from faultline.verdict.store import Store

RECORDS = pa.schema(
    [
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("digest", pa.uuid()),
    ]
)

_NEAR_OFFSETS = 50_000
"""Up to this distance a new read takes longer than reading the records in between."""
_RUN_RECORDS = 20_000


def record_rows(batch: Batch) -> pa.RecordBatch:
    """Turn records into rows of table `source_record`."""
    return pa.record_batch(
        [
            pa.array(batch.partitions, pa.int32()),
            pa.array(batch.offsets, pa.int64()),
            pa.array(batch.timestamps, pa.int64()),
            pa.array(batch.digests, pa.uuid()),
        ],
        schema=RECORDS,
    )


def load_records(store: Store, read: Rows) -> None:
    """Make table `source_record` of the rows of a topic."""
    store.create("source_record", RECORDS)
    for _, rows in read:
        store.append("source_record", rows)


NOT_READ_AGAIN = (Unknown, KafkaException, OSError)
"""Errors of `with_records` when the broker has died after the judging: what was found stands without the records."""


class Position(NamedTuple):
    """The place of a record, and the facts that are known about this record."""

    partition: int
    offset: int
    known: tuple[object, ...]


def with_records(
    reader: TopicReader, topic: str, places: Iterable[Position]
) -> Iterator[tuple[Position, Record | None]]:
    """Yield places, ordered by partition and offset, each with its record."""
    for run in _runs(places):
        span = Span(run[0].offset, run[-1].offset + 1)
        # One record at a time: a run of large ones does not fit into memory.
        left = deque(run)
        for record in (each for batch in reader.read(topic, {run[0].partition: span}) for each in batch.records()):
            while left and left[0].offset <= record.offset:
                place = left.popleft()
                yield place, record if place.offset == record.offset else None
        for place in left:
            yield place, None


def _runs(places: Iterable[Position]) -> Iterator[list[Position]]:
    """Group places that are read together."""
    run: list[Position] = []
    for place in places:
        if run and (
            place.partition != run[0].partition
            or place.offset - run[-1].offset > _NEAR_OFFSETS
            or len(run) >= _RUN_RECORDS
        ):
            yield run
            run = []
        run.append(place)
    if run:
        yield run
