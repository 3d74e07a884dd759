"""Read what the windowing job read and wrote into tables; by contract/visit.py, and by nothing of the job's own."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

import duckdb
from confluent_kafka import Message

from contract.visit import (
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    VisitWindow,
    parse_event_time,
    parse_visit,
)
from verdict.cluster import Cluster, Spans, size
from verdict.digest import record_digest
from verdict.progress import Progress
from verdict.store import Appender

_WINDOW_FIELDS = {"visit_id", "window_start", "window_end", "count", "first_event_time", "last_event_time"}
_SHOWN_BYTES = 160


def load_visits(
    connection: duckdb.DuckDBPyConnection, cluster: Cluster, topic: str, spans: Spans, window_ms: int
) -> None:
    """Fill table `visits` from the source topic."""
    with Appender(connection, "visits") as table, Progress(f"topic {topic}", size(spans)) as progress:
        for batch in cluster.read(topic, spans):
            values = [message.value() for message in batch]
            visits = [parse_visit(value) for value in values]
            table.extend(
                [message.partition() for message in batch],
                [message.offset() for message in batch],
                [visit and encode(visit.visit_id) for visit in visits],
                [visit and visit.event_time for visit in visits],
                [visit and visit.event_time - visit.event_time % window_ms for visit in visits],
                [record_digest(message.key(), value) for message, value in zip(batch, values, strict=True)],
            )
            progress.advance(len(batch))


def load_windows(
    connection: duckdb.DuckDBPyConnection, cluster: Cluster, topic: str, spans: Spans, window_ms: int
) -> None:
    """Fill table `windows` from the job's output, and `malformed` with the records that are no windows."""
    with (
        Appender(connection, "windows") as table,
        Appender(connection, "malformed") as malformed,
        Progress(f"topic {topic}", size(spans)) as progress,
    ):
        for batch in cluster.read(topic, spans):
            read = [(message, parse_window(message.value(), window_ms)) for message in batch]
            proper = [(message, window) for message, window in read if isinstance(window, VisitWindow)]
            table.extend(
                [message.partition() for message, _ in proper],
                [message.offset() for message, _ in proper],
                [encode(window.visit_id) for _, window in proper],
                [window.window_start for _, window in proper],
                [window.count for _, window in proper],
                [window.first_event_time for _, window in proper],
                [window.last_event_time for _, window in proper],
            )
            for message, fault in read:
                if isinstance(fault, str):
                    malformed.add(message.partition(), message.offset(), fault)
            progress.advance(len(batch))


def load_routed(
    connection: duckdb.DuckDBPyConnection, cluster: Cluster, table_name: str, topic: str, spans: Spans
) -> None:
    """Fill table `late` or `rejected`; without proper headers the source's place is null."""
    with Appender(connection, table_name) as table, Progress(f"topic {topic}", size(spans)) as progress:
        for batch in cluster.read(topic, spans):
            for message in batch:
                source = source_place(message)
                table.add(message.partition(), message.offset(), *source, record_digest(message.key(), message.value()))
            progress.advance(len(batch))


def parse_window(value: bytes | None, window_ms: int) -> VisitWindow | str:
    """Read a window record, or say in a few words why it is none; its times must make a window of that length."""
    try:
        document = json.loads((value or b"").decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return f"is not JSON: {_shown(value)}"
    if not isinstance(document, dict) or set(document) != _WINDOW_FIELDS:
        return f"does not have the fields of a window: {_shown(value)}"
    visit_id, count = document["visit_id"], document["count"]
    start, end = _bound(document["window_start"]), _bound(document["window_end"])
    first, last = _time(document["first_event_time"]), _time(document["last_event_time"])
    if not isinstance(visit_id, str) or type(count) is not int or not -(2**63) <= count < 2**63:
        return f"has no proper visit_id or count: {_shown(value)}"
    if start is None or end is None or first is None or last is None:
        return f"has a time that is none: {_shown(value)}"
    if start % window_ms or end - start != window_ms:
        return f"is not a window of {window_ms / 1000:g} s: {_shown(value)}"
    return VisitWindow(visit_id, start, end, count, first, last)


def _shown(value: bytes | None) -> str:
    return (value or b"")[:_SHOWN_BYTES].decode("utf-8", "replace")


def source_place(message: Message) -> tuple[int | None, int | None]:
    """Read which record of the source a routed record stands for: partition and offset, or nulls."""
    headers: Mapping[str, object] = dict(message.headers() or [])
    partition = _decimal(headers.get(SOURCE_PARTITION_HEADER), 2**31)
    offset = _decimal(headers.get(SOURCE_OFFSET_HEADER), 2**63)
    return (None, None) if partition is None or offset is None else (partition, offset)


def encode(visit_id: str) -> bytes:
    """Encode a visit_id for the tables; half a surrogate pair is kept apart from every other text."""
    return visit_id.encode("utf-8", "surrogatepass")


def decode(visit_id: object) -> str:
    """Decode a visit_id of the tables for an example."""
    return bytes(visit_id).decode("utf-8", "replace") if isinstance(visit_id, bytes) else str(visit_id)


def _time(text: object) -> int | None:
    return parse_event_time(text) if isinstance(text, str) else None


@functools.lru_cache(maxsize=65_536)
def _bound_of(text: str) -> int | None:
    return parse_event_time(text)


def _bound(text: object) -> int | None:
    """Read a window's start or end; many windows share theirs."""
    return _bound_of(text) if isinstance(text, str) else None


def _decimal(text: object, limit: int) -> int | None:
    if not isinstance(text, bytes) or not text.isdigit() or len(text) > 19:
        return None
    number = int(text)
    return number if number < limit else None
