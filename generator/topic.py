"""Contents of a topic: its id, its offsets, the newest record of each partition by timestamp, and its records."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

from kafka import KafkaConsumer, OffsetSpec, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from faultline.command import CommandError
from faultline.formats.visit import parse_event_time

_TIMEOUT_SECONDS = 30
"""A broker that has just started on a busy machine answers its first requests late."""
# The last year of event times stays free, since the next visits are some windows later.
LAST_EVENT_TIME = parse_event_time("9998-01-01T00:00:00Z") or 0
"""No visit is sent with a later event time."""


class BrokerError(CommandError):
    """The broker or the topic cannot be reached, or refused a record; the message is one line."""


class Newest(NamedTuple):
    """The record of a partition with the highest timestamp; the generator writes event times there."""

    offset: int
    timestamp: int


class Span(NamedTuple):
    """Offsets of a partition: the first one, and the one after the last."""

    begin: int
    end: int


def id_text(topic_id: str) -> str:
    """Format a topic id like Kafka's own tools; the client has it as `xxxxxxxx-xxxx-...` in hex."""
    return base64.urlsafe_b64encode(UUID(topic_id).bytes).decode().rstrip("=")


class Topic:
    """Queries about an existing topic. Each method raises BrokerError when the broker does not answer."""

    def __init__(self, admin: Any, bootstrap: str, name: str) -> None:
        """Return the topic's id and its number of partitions."""
        self.name = name
        self._admin, self._bootstrap = admin, bootstrap
        with _one_line(bootstrap, name):
            found = admin.describe_topics([name])[0]
        if found["topic_id"] is None or not found["partitions"]:
            raise BrokerError(f"topic {name} does not exist at {bootstrap}; scripts/up.sh creates it")
        self.id = id_text(found["topic_id"])
        self.partitions = len(found["partitions"])

    def newest(self) -> dict[int, Newest]:
        """Return the newest record of each partition; a partition without records is omitted."""
        return {
            partition: Newest(answer.offset, answer.timestamp)
            for partition, answer in self._offsets(OffsetSpec.MAX_TIMESTAMP).items()
            if answer.offset >= 0
        }

    def spans(self) -> dict[int, Span]:
        """Return the offsets of each partition."""
        ends = self._offsets(OffsetSpec.LATEST)
        return {p: Span(begin.offset, ends[p].offset) for p, begin in self._offsets(OffsetSpec.EARLIEST).items()}

    def read(self, spans: dict[int, Span]) -> Iterator[Any]:
        """Yield the committed records of the spans, in the order of each partition."""
        left = {TopicPartition(self.name, p): span.end for p, span in spans.items() if span.begin < span.end}
        with _one_line(self._bootstrap, self.name):
            consumer = KafkaConsumer(
                bootstrap_servers=self._bootstrap,
                enable_auto_commit=False,
                # The jobs read so: what a transaction aborts is no visit.
                isolation_level="read_committed",
            )
            try:
                consumer.assign(list(left))
                for place in left:
                    consumer.seek(place, spans[place.partition].begin)
                yield from self._poll(consumer, left)
            finally:
                consumer.close()

    def _poll(self, consumer: KafkaConsumer, left: dict[TopicPartition, int]) -> Iterator[Any]:
        positions: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while left:
            for place, records in consumer.poll(timeout_ms=500).items():
                yield from (record for record in records if record.offset < left.get(place, 0))
            # A marker of a transaction takes an offset and is no record.
            read = {place: consumer.position(place) for place in left}
            if read != positions:
                positions, deadline = read, time.monotonic() + _TIMEOUT_SECONDS
            left = {place: end for place, end in left.items() if read[place] < end}
            if left and time.monotonic() > deadline:
                where = ", ".join(f"{place.partition} at offset {read[place]}" for place in left)
                raise BrokerError(
                    f"topic {self.name} gave nothing for {_TIMEOUT_SECONDS} s in partition {where}; scripts/status.sh "
                    "says what runs, scripts/transactions.sh which transactions are open"
                )

    def _offsets(self, spec: OffsetSpec) -> dict[int, Any]:
        with _one_line(self._bootstrap, self.name):
            answers = self._admin.list_partition_offsets(
                {TopicPartition(self.name, partition): spec for partition in range(self.partitions)}
            )
        return {place.partition: answer for place, answer in sorted(answers.items())}


@contextmanager
def look_at(bootstrap: str, name: str) -> Iterator[Topic]:
    """Connect for a few queries. Raises BrokerError when there is no such broker or topic."""
    with _one_line(bootstrap, name):
        admin = KafkaAdminClient(
            bootstrap_servers=bootstrap,
            bootstrap_timeout_ms=_TIMEOUT_SECONDS * 1000,
            request_timeout_ms=_TIMEOUT_SECONDS * 1000,
        )
    try:
        yield Topic(admin, bootstrap, name)
    finally:
        admin.close()


@contextmanager
def _one_line(bootstrap: str, name: str) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise BrokerError(f"Kafka at {bootstrap} does not answer about topic {name} ({type(error).__name__})") from None
