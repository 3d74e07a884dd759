"""Whole topics read from Kafka: committed records only, explicit partitions, from the first offset to a snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but the stubs do not re-export it
    AdminClient,
    OffsetSpec,
)

from verdict.model import Unknown

_ANSWER_SECONDS = 10.0
"""How long the broker may take to answer one question."""

_STALL_SECONDS = 30.0
"""How long a read may bring nothing before it is given up."""

_CONSUME_RECORDS = 10_000


@dataclass(frozen=True)
class Span:
    """Offsets of one partition: `begin` is the first, `end` is past the last."""

    begin: int
    end: int


Spans = dict[int, Span]
"""The span of each partition of one topic."""


def size(spans: Mapping[int, Span]) -> int:
    """Count the offsets in a topic's spans; transaction markers count too."""
    return sum(span.end - span.begin for span in spans.values())


class Cluster:
    """One broker address, with the questions that the judge has."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        # librdkafka would write its own lines to stderr for each failed connection; one line of ours says it.
        self._common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._common)

    def spans(self, topic: str, *, committed: bool) -> Spans:
        """Take the spans of a topic now.

        With `committed`, the end is the last stable offset: the first record of the oldest open transaction,
        if there is one; otherwise it is the high watermark. Raises Unknown when there is no such topic or no answer.
        """
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        partitions = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        begins = self._offsets(partitions, OffsetSpec.earliest(), isolation)  # type: ignore[no-untyped-call]
        ends = self._offsets(partitions, OffsetSpec.latest(), isolation)  # type: ignore[no-untyped-call]
        return {partition: Span(begins[partition], ends[partition]) for partition in sorted(begins)}

    def group_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Give what a consumer group has committed for a topic; partitions without a commit are left out."""
        asked = [TopicPartition(topic, partition) for partition in self._partitions(topic)]
        try:
            future = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, asked)])[group]
            answered = future.result(timeout=_ANSWER_SECONDS).topic_partitions or []
        except (KafkaException, TimeoutError) as error:
            raise Unknown(f"the offsets of group {group} cannot be read at {self._bootstrap}: {error}") from None
        for item in answered:
            if item.error is not None:
                raise Unknown(f"the offsets of group {group} cannot be read at {self._bootstrap}: {item.error.str()}")
        return {item.partition: item.offset for item in answered if item.offset != OFFSET_INVALID}

    def read(self, topic: str, spans: Mapping[int, Span]) -> Iterator[list[Message]]:
        """Read the committed records of the spans, in batches; within a partition in the order of offsets.

        Raises Unknown when the broker stops answering, or when it has no such records any more.
        """
        waiting = {partition: span.end for partition, span in spans.items() if span.end > span.begin}
        if not waiting:
            return
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(topic, partition, spans[partition].begin) for partition in waiting])
            last_news = time.monotonic()
            while waiting:
                batch = _take(topic, consumer.consume(_CONSUME_RECORDS, timeout=1.0), waiting)
                if batch:
                    last_news = time.monotonic()
                    yield batch
                elif waiting and time.monotonic() - last_news > _STALL_SECONDS:
                    raise Unknown(f"topic {topic} at {self._bootstrap} brought nothing for {_STALL_SECONDS:.0f} s")
        finally:
            consumer.close()

    def record(self, topic: str, partition: int, offset: int) -> Message | None:
        """Fetch one record, for an example."""
        for batch in self.read(topic, {partition: Span(offset, offset + 1)}):
            return batch[0]
        return None

    def _partitions(self, topic: str) -> list[int]:
        try:
            # All topics: a question for one by name may create it.
            topics = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException:
            raise Unknown(
                f"the broker at {self._bootstrap} does not answer; start the stack (scripts/up.sh) or give --bootstrap"
            ) from None
        if topic not in topics:
            raise Unknown(f"topic {topic} does not exist at {self._bootstrap}; start the stack (scripts/up.sh)")
        return sorted(topics[topic].partitions)

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel) -> dict[int, int]:
        try:
            futures = self._admin.list_offsets(
                dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=_ANSWER_SECONDS
            )
            return {asked.partition: int(future.result().offset) for asked, future in futures.items()}
        except KafkaException as error:
            topic = partitions[0].topic
            raise Unknown(f"the offsets of topic {topic} cannot be read at {self._bootstrap}: {error}") from None

    def _consumer(self) -> Consumer:
        return Consumer(
            self._common
            | {
                # The client demands a name; partitions are assigned by hand, nothing is committed: no group forms.
                "group.id": "verdict-without-a-group",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",  # what an aborted or open transaction wrote is no output
                "auto.offset.reset": "error",  # a record that is gone must not be skipped in silence
                "enable.partition.eof": True,  # transaction markers are not delivered: the end must be told
                "check.crcs": True,
                "queued.max.messages.kbytes": 32_768,
                "fetch.message.max.bytes": 4_194_304,
            }
        )


def _take(topic: str, messages: list[Message], waiting: dict[int, int]) -> list[Message]:
    """Pick the records that lie before the end of their partition, and strike the partitions that are read."""
    batch = []
    for message in messages:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise Unknown(f"topic {topic} cannot be read: {error.str()}")
        if partition is None or offset is None or partition not in waiting:
            continue
        if error is None and offset < waiting[partition]:
            batch.append(message)
        # The end of a partition is told at the offset past its last.
        if offset + (error is None) >= waiting[partition]:
            del waiting[partition]
    return batch
