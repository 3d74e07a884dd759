"""Bytes of a Flink `_metadata` by hand, for what no job here writes: as MetadataV6Serializer reads it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

BYTES = "org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializer"
MODES = ("SPLIT_DISTRIBUTE", "UNION", "BROADCAST")
NOTHING = b"\0"
"""A handle that is null."""


def ints(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def longs(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def versioned(version: int, content: bytes) -> bytes:
    """As SimpleVersionedSerialization writes it."""
    return ints(version, len(content)) + content


def inline(content: bytes) -> bytes:
    """A ByteStreamStateHandle."""
    return b"\1" + utf("inline") + ints(len(content)) + content


def file(path: str, size: int) -> bytes:
    """A FileStateHandle."""
    return b"\2" + longs(size) + utf(path)


def own(name: str, size: int) -> bytes:
    """A RelativeFileStateHandle."""
    return b"\6" + utf(name) + longs(size)


def segment(path: str, size: int) -> bytes:
    """A SegmentFileStateHandle."""
    return b"\x0f" + longs(0, size) + ints(0) + utf(path) + utf("id")


def keyed(stream: bytes) -> bytes:
    """A KeyGroupsStateHandle."""
    return b"\3" + ints(0, 128) + longs(*[0] * 128) + stream


def merged(stream: bytes, size: int) -> bytes:
    """A MergedInputChannelStateHandle."""
    return b"\3" + ints(0) + longs(size) + stream + ints(4, 0)


def lists(states: Mapping[str, Sequence[bytes]], mode: str = MODES[0], stream: bytes | None = None) -> bytes:
    """Operator state of byte arrays: in the metadata itself, or in the stream; that of a segment is of merged files."""
    head, offsets = ints(6) + b"\0" + struct.pack(">h", len(states)), b""
    for name in states:
        head += utf(name) + ints(1, 1) + utf("OPERATOR_STATE_DISTRIBUTION_MODE") + utf(mode) + ints(1)
        head += utf("VALUE_SERIALIZER") + ints(2) + utf(f"{BYTES}Snapshot") + ints(3)
    head += b"\0\0"
    for name, elements in states.items():
        offsets += utf(name) + bytes([MODES.index(mode)]) + ints(len(elements))
        for element in elements:
            offsets += longs(len(head))
            head += ints(len(element)) + element
    is_merged = stream is not None and stream[:1] == b"\x0f"
    folders = utf("/taskowned") + utf("/shared") + b"\0" if is_merged else b""
    return bytes([17 if is_merged else 4]) + ints(len(states)) + offsets + folders + (stream or inline(head))


def operator(
    name: str, *, state: bytes = b"", keys: bytes = NOTHING, raw: bytes = NOTHING, channel: bytes = b"",
    coordinator: bytes | None = None, number: int = 1, finished: bool = False,
) -> bytes:  # fmt: skip
    """An operator with one subtask, and `number` for an id."""
    start = utf(name) + utf("") + longs(0, number) + ints(1, 128)
    start += NOTHING if coordinator is None else inline(coordinator)
    if finished:
        return start + ints(-1)
    subtask = (ints(1) + state if state else ints(0)) + ints(0) + keys + raw
    return start + ints(1, 0) + subtask + (ints(1) + channel if channel else ints(0)) + ints(0)


def hook(name: str, content: bytes) -> bytes:
    """The state of a master hook."""
    state = ints(1) + utf(name) + ints(len(content)) + content
    return bytes.fromhex("c96b1696") + ints(len(state)) + state


def metadata(*operators: bytes, like: Path, hooks: Sequence[bytes] = ()) -> bytes:
    """The whole file; its properties, a serialized object, are those of another one."""
    properties = like.read_bytes().partition(b"\xac\xed\0\5")
    head = ints(0x4960672D, 6) + longs(5) + ints(len(hooks)) + b"".join(hooks) + ints(len(operators))
    return head + b"".join(operators) + b"".join(properties[1:])


def split(topic: str, offset: int) -> bytes:
    """A split of Flink's Kafka source, of partition 0."""
    return versioned(0, utf(topic) + ints(0) + longs(offset, -(2**63)))


def enumerator(version: int, content: bytes) -> bytes:
    """The state of a source's coordinator."""
    return ints(1) + versioned(version, content)


def source(name: str, *splits: bytes, number: int = 1, coordinator: bytes) -> bytes:
    """An operator with the splits of a source."""
    return operator(name, state=lists({"SourceReaderState": splits}), coordinator=coordinator, number=number)


def kafka(topic: str, offset: int, number: int = 9) -> bytes:
    """A Kafka source that has read to an offset of partition 0."""
    known = ints(1) + utf(topic) + ints(0, 0) + b"\1"
    return source("Source: kafka", split(topic, offset), number=number, coordinator=enumerator(2, known))


def committables(content: bytes) -> bytes:
    """One committable as a committer keeps it since Sink V1 (CommittableCollectorSerializer)."""
    return versioned(1, bytes.fromhex("b91f252c") + ints(1, 1, len(content)) + content)
