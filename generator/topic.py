"""What the broker knows about a topic: its id, and the newest record of each partition by timestamp."""

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

from contract.visit import iso_time, parse_event_time

_TIMEOUT_SECONDS = 30
"""A broker that has just started on a busy machine answers its first requests late."""
# The last years of event times stay free, since the next visits are some windows later.
_LAST_EVENT_TIME = parse_event_time("9998-01-01T00:00:00Z") or 0


class BrokerError(Exception):
    """The broker or the topic cannot be reached, or refused a record; the message is one line."""


class Newest(NamedTuple):
    """The record of a partition with the highest timestamp, which is an event time."""

    offset: int
    timestamp: int


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
        found = {
            partition: Newest(answer.offset, answer.timestamp)
            for partition, answer in self._offsets(OffsetSpec.MAX_TIMESTAMP).items()
            if answer.offset >= 0
        }
        for partition, newest in found.items():
            if newest.timestamp > _LAST_EVENT_TIME:
                raise BrokerError(
                    f"record {newest.offset} in partition {partition} of topic {self.name} has the timestamp "
                    f"{newest.timestamp}, and no event time is after {iso_time(_LAST_EVENT_TIME)}; "
                    "start clean with scripts/down.sh --wipe"
                )
        return found

    def ends(self) -> dict[int, int]:
        """Return the offset that the next record of each partition gets."""
        return {partition: answer.offset for partition, answer in self._offsets(OffsetSpec.LATEST).items()}

    def keys(self, places: dict[int, int]) -> dict[int, bytes | None]:
        """Read the keys of the records at these offsets, one per partition."""
        keys: dict[int, bytes | None] = {}
        with _one_line(self._bootstrap, self.name):
            consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)
            try:
                consumer.assign([TopicPartition(self.name, partition) for partition in places])
                for partition, offset in places.items():
                    consumer.seek(TopicPartition(self.name, partition), offset)
                deadline = time.monotonic() + _TIMEOUT_SECONDS
                while len(keys) < len(places):
                    if time.monotonic() > deadline:
                        raise BrokerError(
                            f"topic {self.name} could not be read within {_TIMEOUT_SECONDS} s; "
                            "scripts/status.sh says what runs"
                        )
                    for records in consumer.poll(timeout_ms=500).values():
                        for record in records:
                            if record.offset == places[record.partition]:
                                keys[record.partition] = record.key
            finally:
                consumer.close()
        return keys

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
