"""Read a topic of Kafka to its end, by librdkafka (confluent-kafka): without a group, and nothing is committed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from faultline.command import CommandError
from faultline.kafka_errors import said

_ANSWER_SECONDS = 30.0
_STALL_SECONDS = 30.0
"""Seconds that a read may return nothing before it fails."""
_CONSUME_RECORDS = 5_000
_CONSUME_SECONDS = 0.05
"""A call waits for this many records or this long: enough for a small topic."""


class ReadError(CommandError):
    """The broker does not answer, has no such topic or no longer these records; the message says which."""


def reader(bootstrap: str, *, committed: bool, **settings: object) -> Consumer:
    """Make a consumer that joins no group; `settings`: further ones of the client, with underscores for dots."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            # The client requires a name; partitions are assigned explicitly, nothing is committed: no group forms.
            "group.id": "reader-without-a-group",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # Records of aborted or open transactions are not output.
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            # librdkafka would write lines to stderr for each failed connection; our one line is enough.
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def read(
    bootstrap: str, topic: str, spans: Mapping[int, tuple[int, int | None]] | None = None, *, committed: bool = True
) -> Iterator[list[Message]]:
    """Yield lists of records; within a partition they are in the order of offsets.

    `spans`: by partition, the first offset and the one after the last, or None for the present end; without them all
    of each partition is read. Raises ReadError.
    """
    consumer = reader(
        bootstrap,
        committed=committed,
        auto_offset_reset="error",  # a deleted record must not be skipped silently
        enable_partition_eof=True,  # transaction markers are not delivered: the end is its own message
        check_crcs=True,
        queued_max_messages_kbytes=16_384,
        fetch_message_max_bytes=4_194_304,
        # At the end of a partition the broker must not wait for more records.
        fetch_wait_max_ms=50,
        # A full queue is empty again within milliseconds; by default the client stops fetching for a second.
        fetch_queue_backoff_ms=10,
    )
    try:
        if spans is None:
            spans = dict.fromkeys(_partitions(consumer, topic), (OFFSET_BEGINNING, None))
        waiting = {partition: end for partition, (begin, end) in spans.items() if end is None or end > begin}
        consumer.assign([TopicPartition(topic, partition, spans[partition][0]) for partition in waiting])
        last_news = time.monotonic()
        while waiting:
            messages = _take(topic, consumer.consume(_CONSUME_RECORDS, timeout=_CONSUME_SECONDS), waiting)
            if messages:
                last_news = time.monotonic()
                yield messages
            elif waiting and time.monotonic() - last_news > _STALL_SECONDS:
                raise ReadError(f"topic {topic} at {bootstrap} returned no records for {_STALL_SECONDS:.0f} s")
    except KafkaException as error:
        raise ReadError(f"topic {topic} at {bootstrap} cannot be read: {said(error)}") from None
    finally:
        consumer.close()


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    found = consumer.list_topics(topic, _ANSWER_SECONDS).topics[topic]
    if found.error is not None:
        raise ReadError(f"topic {topic}: {found.error.str()}")
    return list(found.partitions)


def _take(topic: str, messages: list[Message], waiting: dict[int, int | None]) -> list[Message]:
    """Select the records before the end of their partition, and remove the partitions that are read."""
    batch = []
    for message in messages:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise ReadError(f"topic {topic} cannot be read: {error.str()}")
        if partition is None or offset is None or partition not in waiting:
            continue
        end = waiting[partition]
        if error is None and (end is None or offset < end):
            batch.append(message)
        # The end of a partition is a message at the offset after its last.
        if (error is not None) if end is None else (offset + (error is None) >= end):
            del waiting[partition]
    return batch
