"""Whole topics read from Kafka: committed records only, explicit partitions, from the first offset to a snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but the stubs do not re-export it
    AdminClient,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from faultline.kafka_errors import said
from faultline.verdict.model import Unknown
from faultline.verdict.records import UNREADABLE, Batch, Headers, Record, Span, Spans
from faultline.waiting import attempts

_ANSWER_SECONDS = 10.0
"""Time limit for one answer of the broker, in seconds."""

_COORDINATOR_SECONDS = 60.0
"""Time limit for a broker that has just started to create its topic of group offsets, in seconds."""

_NO_COORDINATOR_YET = (
    KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)  # fmt: skip

_STALL_SECONDS = 30.0
"""Seconds that a read may return nothing before it fails."""

_CONSUME_RECORDS = 5_000
_CONSUME_SECONDS = 0.05
"""A call waits for this many records or this long: enough for a small topic."""


class Cluster:
    """One broker address, with the queries of the judge."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        # librdkafka would write lines to stderr for each failed connection; our one line is enough.
        self._common: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._common)

    def spans(self, topic: str, *, committed: bool) -> Spans:
        """Return the spans of a topic now.

        With `committed`, the end is the last stable offset: the first record of the oldest open transaction,
        if there is one; otherwise it is the high watermark. Raises Unknown when there is no such topic or no answer.
        """
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        partitions = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        begins = self._offsets(partitions, OffsetSpec.earliest(), isolation)  # type: ignore[no-untyped-call]
        ends = self._offsets(partitions, OffsetSpec.latest(), isolation)  # type: ignore[no-untyped-call]
        return {partition: Span(begins[partition], ends[partition]) for partition in sorted(begins)}

    def open_transactions(self, topic: str) -> dict[int, Span]:
        """Return the offsets after an open transaction: from the last stable offset to the end, per partition."""
        # The end first: a record that is written in between belongs to no open transaction.
        written, stable = self.spans(topic, committed=False), self.spans(topic, committed=True)
        return {
            partition: Span(span.end, written[partition].end)
            for partition, span in stable.items()
            if partition in written and span.end < written[partition].end
        }

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Return the committed offsets of a consumer group for a topic; partitions without a commit are omitted."""
        asked = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        # A consumer that never joins the group: the admin client can crash the process while the group's coordinator
        # moves (https://github.com/confluentinc/librdkafka/issues/5040).
        consumer = Consumer(self._common | {"group.id": group, "enable.auto.commit": False})
        try:
            answered = _committed(consumer, asked)
        except KafkaException as error:
            raise Unknown(f"the offsets of group {group} cannot be read at {self.bootstrap}: {said(error)}") from None
        finally:
            consumer.close()
        for item in answered:
            if item.error is not None:
                raise Unknown(f"the offsets of group {group} cannot be read at {self.bootstrap}: {item.error.str()}")
        return {item.partition: item.offset for item in answered if item.offset != OFFSET_INVALID}

    def topic_id(self, topic: str) -> str:
        """Return the broker's id of a topic, as Kafka's tools print it; a recreated topic has another."""
        try:
            future = self._admin.describe_topics(TopicCollection([topic]), request_timeout=_ANSWER_SECONDS)[topic]
            # This client prints base64 with + and /; Kafka's tools print the form for URLs.
            return str(future.result().topic_id).replace("+", "-").replace("/", "_")
        except KafkaException as error:
            raise Unknown(f"topic {topic} cannot be described at {self.bootstrap}: {said(error)}") from None

    def is_compacted(self, topic: str) -> bool:
        """Return whether the broker may remove records from the middle of a topic."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            entries = self._admin.describe_configs([resource])[resource].result(timeout=_ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise Unknown(f"the settings of topic {topic} cannot be read at {self.bootstrap}: {said(error)}") from None
        return "compact" in str(entries["cleanup.policy"].value)

    def read(self, topic: str, spans: Mapping[int, Span]) -> Iterator[Batch]:
        """Read the committed records of the spans, in batches; within a partition in the order of offsets.

        Raises Unknown when the broker stops answering, or when it no longer has these records.
        """
        waiting = {partition: span.end for partition, span in spans.items() if span.end > span.begin}
        if not waiting:
            return
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, partition, spans[partition].begin) for partition in waiting])
            last_news = time.monotonic()
            while waiting:
                messages = _take(topic, consumer.consume(_CONSUME_RECORDS, timeout=_CONSUME_SECONDS), waiting)
                if messages:
                    last_news = time.monotonic()
                    yield _batch(messages)
                elif waiting and time.monotonic() - last_news > _STALL_SECONDS:
                    raise Unknown(f"topic {topic} at {self.bootstrap} returned no records for {_STALL_SECONDS:.0f} s")
        finally:
            consumer.close()

    def first_record(self, topic: str, partition: int, span: Span) -> Record | None:
        """Read the first committed record of a span; None when it holds only markers and aborted records."""
        for batch in self.read(topic, {partition: span}):
            return next(batch.records())
        return None

    def _partitions(self, topic: str) -> list[int]:
        try:
            # All topics: a request for one by name may create it.
            topics = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException:
            raise Unknown(
                f"the broker at {self.bootstrap} does not answer; start the stack (scripts/up.sh) or give --bootstrap"
            ) from None
        if topic not in topics:
            raise Unknown(f"topic {topic} does not exist at {self.bootstrap}; start the stack (scripts/up.sh)")
        return sorted(topics[topic].partitions)

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel) -> dict[int, int]:
        try:
            futures = self._admin.list_offsets(
                dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=_ANSWER_SECONDS
            )
            return {asked.partition: int(future.result().offset) for asked, future in futures.items()}
        except KafkaException as error:
            topic = partitions[0].topic
            raise Unknown(f"the offsets of topic {topic} cannot be read at {self.bootstrap}: {said(error)}") from None

    def _consumer(self) -> Consumer:
        return Consumer(
            self._common
            | {
                # The client requires a name; partitions are assigned explicitly, nothing is committed: no group forms.
                "group.id": "verdict-without-a-group",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",  # records of aborted or open transactions are not output
                "auto.offset.reset": "error",  # a deleted record must not be skipped silently
                "enable.partition.eof": True,  # transaction markers are not delivered: the end is its own message
                "check.crcs": True,
                "queued.max.messages.kbytes": 16_384,
                "fetch.message.max.bytes": 4_194_304,
                # A full queue is empty again within milliseconds; by default the client stops fetching for a second.
                "fetch.queue.backoff.ms": 10,
            }
        )


def _committed(consumer: Consumer, asked: list[TopicPartition]) -> list[TopicPartition]:
    """Ask for a group's offsets until its coordinator can answer; a broker that has just started cannot yet.

    Raises KafkaException when there is no answer in time.
    """
    for _ in attempts(_COORDINATOR_SECONDS):
        try:
            return consumer.committed(asked, timeout=_COORDINATOR_SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in _NO_COORDINATOR_YET:
                raise
            refused = error
    raise refused


def _take(topic: str, messages: list[Message], waiting: dict[int, int]) -> list[Message]:
    """Select the records before the end of their partition, and remove the partitions that are read."""
    batch = []
    for message in messages:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise Unknown(f"topic {topic} cannot be read: {error.str()}")
        if partition is None or offset is None or partition not in waiting:
            continue
        if error is None and offset < waiting[partition]:
            batch.append(message)
        # The end of a partition is a message at the offset after its last.
        if offset + (error is None) >= waiting[partition]:
            del waiting[partition]
    return batch


def _batch(messages: list[Message]) -> Batch:
    return Batch(
        partitions=[message.partition() for message in messages],  # type: ignore[misc]
        offsets=[message.offset() for message in messages],  # type: ignore[misc]
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        timestamps=[_timestamp(message) for message in messages],
        headers=[_headers(message) for message in messages],
    )


def _headers(message: Message) -> Headers:
    try:
        return message.headers() or ()  # type: ignore[return-value]
    except UnicodeDecodeError:
        return UNREADABLE


def _timestamp(message: Message) -> int:
    """Return the time that the producer wrote, or the broker, as the topic says; -1 if there is none."""
    kind, milliseconds = message.timestamp()
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds
