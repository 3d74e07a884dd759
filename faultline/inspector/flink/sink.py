"""Kafka transactions that a checkpoint holds: prepared by the writer, kept by the committer.

A sink operator's committer keeps list state `streaming_committer_raw_states`; each element is a collector of
committables, one per transaction. A restore commits them first (Sink V2, KafkaSink). Every sink of Sink V2 keeps them
there, and nothing names the connector: they are Kafka's when Kafka's serializers wrote all of their bytes.
"""

from __future__ import annotations

import struct
from typing import Any

from py4j.protocol import Py4JError

from faultline.inspector.errors import UnknownConnector
from faultline.inspector.flink.hidden import new
from faultline.inspector.flink.jvm import each, java_cause
from faultline.inspector.flink.metadata import Entry
from faultline.inspector.flink.offsets import list_state
from faultline.inspector.model import Transaction

COMMITTER_STATE = "streaming_committer_raw_states"
WRITER_STATE = "writer_raw_states"
KAFKA = "org.apache.flink.connector.kafka.sink"


def transactional_writers(jvm: Any, entry: Entry) -> int:
    """Count the writer subtasks that keep transactions: 0 when the sink is not exactly-once.

    Raises InspectorError when its state cannot be read, UnknownConnector when it is not of this Kafka connector.
    """
    elements = list_state(jvm, entry, WRITER_STATE)
    read = jvm.org.apache.flink.core.io.SimpleVersionedSerialization.readVersionAndDeSerialize
    try:
        serializer = new(jvm, f"{KAFKA}.KafkaWriterStateSerializer")
        for element in elements:
            state = read(serializer, element)
            # Version 1 is the prefix alone.
            is_old = int.from_bytes(element[:4]) == 1
            written = _utf(state.getTransactionalIdPrefix()) if is_old else serializer.serialize(state)
            _check_whole(entry, element, written)
    except Py4JError as error:
        raise UnknownConnector(
            f"sink {entry.label}: its writers' state is not of this Kafka connector ({java_cause(error)})"
        ) from None
    return len(elements)


def prepared(jvm: Any, entry: Entry) -> list[Transaction]:
    """List the transactions of one committer.

    Raises InspectorError when its state cannot be read, UnknownConnector when its committables are not of this Kafka
    connector.
    """
    flink = jvm.org.apache.flink
    groups = flink.runtime.metrics.groups
    found = []
    try:
        # Counting committables is part of restoring them; this group registers its counters nowhere.
        metrics = groups.InternalSinkCommitterMetricGroup.wrap(
            groups.UnregisteredMetricGroups.createUnregisteredOperatorMetricGroup()
        )
        serializer = flink.streaming.runtime.operators.sink.committables.CommittableCollectorSerializer(
            new(jvm, f"{KAFKA}.KafkaCommittableSerializer"), 0, 1, metrics
        )
        read = flink.core.io.SimpleVersionedSerialization.readVersionAndDeSerialize
        for element in list_state(jvm, entry, COMMITTER_STATE):
            for manager in each(read(serializer, element).getCheckpointCommittablesUpTo(2**63 - 1)):
                for subtask in each(manager.getSubtaskCommittableManagers()):
                    for request in each(subtask.getRequests()):
                        one = _transaction(request.getCommittable(), manager.getCheckpointId())
                        content = struct.pack(">hq", one.epoch, one.producer_id) + _utf(one.transactional_id)
                        _check_whole(entry, element, content)
                        found.append(one)
    except Py4JError as error:
        raise UnknownConnector(
            f"sink {entry.label}: its committables are not of this Kafka connector ({java_cause(error)})"
        ) from None
    return found


def _utf(text: str) -> bytes:
    content = text.encode(errors="surrogatepass")
    return struct.pack(">H", len(content)) + content


def _check_whole(entry: Entry, element: bytes, content: bytes) -> None:
    """Raise UnknownConnector unless the element has this content with its length (SimpleVersionedSerialization).

    KafkaCommittableSerializer and KafkaWriterStateSerializer take bytes of any connector that are long enough.
    """
    if struct.pack(">i", len(content)) + content not in element:
        raise UnknownConnector(f"sink {entry.label}: its state is not of this Kafka connector")


def _transaction(committable: Any, checkpoint: int) -> Transaction:
    return Transaction(
        committable.getTransactionalId(), committable.getProducerId(), committable.getEpoch(), checkpoint
    )
