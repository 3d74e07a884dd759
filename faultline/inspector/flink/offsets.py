"""Kafka offsets from which a restore continues, from the source operators of a checkpoint.

A source operator is recognized by its list state `SourceReaderState` (Flink's SourceOperator), not by its name. Every
connector keeps its splits there, and nothing names the connector: a split is Kafka's when all its bytes are what
KafkaPartitionSplitSerializer writes. Partitions that no reader had yet are in the enumerator's state, which the
coordinator wrote.
"""

from __future__ import annotations

import re
import struct
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError

from faultline.inspector.errors import InspectorError, UnknownConnector
from faultline.inspector.flink.jvm import each, java_cause
from faultline.inspector.flink.metadata import Entry

READER_STATE = "SourceReaderState"
MARKERS = {-1: "latest", -2: "earliest", -3: "committed"}
"""KafkaPartitionSplit's starting offsets of a partition that nothing was read from yet."""

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that Kafka allows for a topic (org.apache.kafka.common.internals.Topic)."""

NO_SPLITS = 4
"""Bytes of an empty list: enumerators of other connectors write it too (NumberSequenceSource), Kafka's writes more."""

_UNKNOWN = ("StateMigrationException", "ClassNotFound", "NoClassDefFound", "OutOfMemoryError")
"""Words of Flink on a state of another serializer, of one whose class is not here, and of more than memory holds."""

Offsets = dict[tuple[str, int], int]
"""(topic, partition) -> offset of the next record to read, or one of MARKERS."""


def _restored_list(jvm: Any, entry: Entry, name: str, serializer: Any) -> list[Any]:
    """Elements of a list state, restored by Flink's operator state backend.

    Raises InspectorError when it cannot be read; a running job deletes old checkpoints while they are looked at.
    """
    handles = _handles_with(entry, name)
    try:
        return _elements(jvm, handles, name, serializer)
    except Py4JError as error:
        why = f"operator {entry.label}: its state {name} cannot be read ({java_cause(error)})"
        if isinstance(error, Py4JNetworkError) or any(word in why for word in _UNKNOWN):
            raise UnknownConnector(why) from None
        raise InspectorError(why) from None


def _elements(jvm: Any, handles: list[Any], name: str, serializer: Any) -> list[Any]:
    flink = jvm.org.apache.flink
    collected = jvm.java.util.ArrayList()
    for handle in handles:
        collected.add(handle)
    backend = flink.runtime.state.DefaultOperatorStateBackendBuilder(
        jvm.java.lang.ClassLoader.getSystemClassLoader(),
        flink.api.common.ExecutionConfig(),
        False,
        collected,
        flink.core.fs.CloseableRegistry(),
    ).build()
    descriptor = flink.api.common.state.ListStateDescriptor(name, serializer)
    # The backend distinguishes a union list (`watermark`) from a split one and refuses the wrong access.
    state = backend.getUnionListState(descriptor) if _is_union(handles, name) else backend.getListState(descriptor)
    elements = each(state.get())
    backend.dispose()
    return elements


def _is_union(handles: list[Any], name: str) -> bool:
    mode = handles[0].getStateNameToPartitionOffsets()[name].getDistributionMode()
    return bool(mode.toString() == "UNION")


def list_state(jvm: Any, entry: Entry, name: str) -> list[bytes]:
    """Elements of an operator's list state of byte arrays. Raises InspectorError when it cannot be read."""
    serializers = jvm.org.apache.flink.api.common.typeutils.base.array
    return [
        bytes(element)
        for element in _restored_list(jvm, entry, name, serializers.BytePrimitiveArraySerializer.INSTANCE)
    ]


def list_longs(jvm: Any, entry: Entry, name: str) -> list[int]:
    """Elements of an operator's list state of longs. Raises InspectorError when it cannot be read."""
    serializers = jvm.org.apache.flink.api.common.typeutils.base
    return [int(element) for element in _restored_list(jvm, entry, name, serializers.LongSerializer.INSTANCE)]


def list_pairs(jvm: Any, entry: Entry, name: str) -> list[tuple[int, int]]:
    """Elements of an operator's list state of Tuple2<Integer, Long>. Raises InspectorError when it cannot be read."""
    types = jvm.org.apache.flink.api.common.typeinfo.Types
    fields = jvm.java.lang.reflect.Array.newInstance(
        jvm.java.lang.Class.forName("org.apache.flink.api.common.typeinfo.TypeInformation"), 2
    )
    fields[0], fields[1] = types.INT, types.LONG
    serializer = types.TUPLE(fields).createSerializer(
        jvm.org.apache.flink.api.common.serialization.SerializerConfigImpl()
    )
    pairs = _restored_list(jvm, entry, name, serializer)
    return [(int(pair.getField(0)), int(pair.getField(1))) for pair in pairs]


def _handles_with(entry: Entry, name: str) -> list[Any]:
    """Find the managed operator state handles of all subtasks that hold a list state of that name."""
    managed = entry.handles("ManagedOperatorState")
    return [handle for handle in managed if handle.getStateNameToPartitionOffsets().containsKey(name)]


def source_offsets(jvm: Any, entry: Entry) -> Offsets:
    """Offsets of one source operator, readers first, then partitions that wait in the enumerator.

    Raises InspectorError when the state cannot be read, UnknownConnector when it is not one of Flink's Kafka source.
    """
    offsets: Offsets = {}
    for element in list_state(jvm, entry, READER_STATE):
        topic, partition, offset = _kafka_split(entry, element)
        offsets[(topic, partition)] = offset
    try:
        state = enumerator_state(jvm, entry)
        for split in each(_kafka_enumerator(jvm, *state).unassignedSplits()) if state else []:
            _check_partition(entry, split.getTopic(), split.getPartition(), split.getStartingOffset())
            offsets.setdefault((split.getTopic(), split.getPartition()), split.getStartingOffset())
    except Py4JError as error:
        raise UnknownConnector(
            f"source {entry.label}: its state is not of this Kafka connector ({java_cause(error)})"
        ) from None
    if not offsets and (state is None or len(state[1]) <= NO_SPLITS):
        raise UnknownConnector(f"source {entry.label}: it has no split, and nothing says whose")
    return dict(sorted(offsets.items()))


def _kafka_split(entry: Entry, element: bytes) -> tuple[str, int, int]:
    """Topic, partition and offset of a split, as SimpleVersionedSerialization wraps it. Raises UnknownConnector.

    KafkaPartitionSplitSerializer, version 0: the topic with two bytes for its length, the partition, and two offsets.
    """
    with suppress(struct.error, UnicodeDecodeError):
        version, size, length = struct.unpack_from(">iiH", element)
        topic = element[10 : 10 + length].decode("ascii")
        partition, offset, _ = struct.unpack(">iqq", element[10 + length :])
        if version == 0 and size == len(element) - 8:
            _check_partition(entry, topic, partition, offset)
            return topic, partition, offset
    raise UnknownConnector(f"source {entry.label}: its state is not of this Kafka connector")


def _check_partition(entry: Entry, topic: str, partition: int, offset: int) -> None:
    if not TOPIC.fullmatch(topic) or partition < 0 or offset < min(MARKERS):
        raise UnknownConnector(f"source {entry.label}: its state is not of this Kafka connector")


def enumerator_state(jvm: Any, entry: Entry) -> tuple[int, Any] | None:
    """The state of a source's enumerator: the version of its serializer, and its bytes; None when there is none.

    SourceCoordinator writes a version, then the enumerator's state with its own version and length.
    """
    handle = entry.state.getCoordinatorState()
    if handle is None:
        return None
    stream = jvm.java.io.DataInputStream(handle.openInputStream())
    stream.readInt()
    version = stream.readInt()
    return version, stream.readNBytes(stream.readInt())


def _kafka_enumerator(jvm: Any, version: int, content: Any) -> Any:
    serializer = jvm.org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer()
    return serializer.deserialize(version, content)


def partitions_at_their_end(jvm: Any, entry: Entry) -> int:
    """Count the partitions that readers have given back, of a Kafka source of which no reader has one.

    Flink does not read them again (KafkaSourceEnumerator.getPartitionChange).
    """
    state = enumerator_state(jvm, entry)
    return len(each(_kafka_enumerator(jvm, *state).assignedSplits())) if state else 0


def all_offsets(jvm: Any, entries: list[Entry]) -> Offsets:
    """Offsets of every source operator together.

    Raises InspectorError when two sources read the same partition: there is then no single offset to name.
    """
    offsets: Offsets = {}
    for operator in (entry for entry in entries if READER_STATE in entry.lists):
        for partition, offset in source_offsets(jvm, operator).items():
            if offsets.get(partition, offset) != offset:
                raise InspectorError(f"two sources read {partition[0]}-{partition[1]} from different offsets")
            offsets[partition] = offset
    return offsets


def by_partition(offsets: Offsets) -> dict[str, int]:
    """`{"0": 900}` for one topic, `{"visits-0": 900}` when there are several."""
    topics = {topic for topic, _ in offsets}
    return {
        str(partition) if len(topics) == 1 else f"{topic}-{partition}": offset
        for (topic, partition), offset in sorted(offsets.items())
    }
