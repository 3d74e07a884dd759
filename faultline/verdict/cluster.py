"""Whole topics read from Kafka: committed records only, explicit partitions, from the first offset to a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from faultline.topic_reader import ReadError, read, reader
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


class Cluster:
    """One broker address, with the queries of the judge. Without `committed`, it reads every transaction's records."""

    def __init__(self, bootstrap: str, *, committed: bool = True) -> None:
        self.bootstrap, self.committed = bootstrap, committed
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

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
        consumer = reader(self.bootstrap, committed=True, group_id=group)
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
        """Read the records of the spans, in batches; within a partition in the order of offsets.

        Raises Unknown when the broker stops answering, or when it no longer has these records.
        """
        wanted = {partition: (span.begin, span.end) for partition, span in spans.items() if span.end > span.begin}
        if not wanted:
            return
        try:
            yield from map(_batch, read(self.bootstrap, topic, wanted, committed=self.committed))
        except ReadError as error:
            raise Unknown(str(error)) from None

    def first_record(self, topic: str, partition: int, span: Span) -> Record | None:
        """Read the first committed record of a span; None when it holds only markers and aborted records."""
        for batch in self.read(topic, {partition: span}):
            return next(batch.records())
        return None

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions of each topic. Raises Unknown when there is no answer."""
        try:
            # All topics: a request for one by name may create it.
            found = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
        except KafkaException:
            raise Unknown(
                f"the broker at {self.bootstrap} does not answer; start the stack (scripts/up.sh) or give --bootstrap"
            ) from None
        return {name: sorted(topic.partitions) for name, topic in found.items()}

    def _partitions(self, topic: str) -> list[int]:
        topics = self.topics()
        if topic not in topics:
            raise Unknown(f"topic {topic} does not exist at {self.bootstrap}; start the stack (scripts/up.sh)")
        return topics[topic]

    def _offsets(self, partitions: list[TopicPartition], spec: OffsetSpec, isolation: IsolationLevel) -> dict[int, int]:
        try:
            futures = self._admin.list_offsets(
                dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=_ANSWER_SECONDS
            )
            return {asked.partition: int(future.result().offset) for asked, future in futures.items()}
        except KafkaException as error:
            topic = partitions[0].topic
            raise Unknown(f"the offsets of topic {topic} cannot be read at {self.bootstrap}: {said(error)}") from None


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
