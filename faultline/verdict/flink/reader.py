"""Turns records of the windowing job's topics into rows, by faultline/formats/visit.py, without code of the job."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import NamedTuple

import orjson
import pyarrow as pa

from faultline.formats.digest import digest
from faultline.formats.visit import (
    CLOSING_PREFIX,
    LATE_REASON,
    MAX_NESTING,
    NO_EVENT_TIME,
    NO_VISIT_ID,
    NOT_ONE_OBJECT,
    NOT_UTF8,
    NULL_VALUE,
    REASON_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    Visit,
    VisitWindow,
    iso_time,
    parse_event_time,
    parse_visit,
    refusal_reasons,
    visit_of,
)
from faultline.verdict.escape import name_of, shown
from faultline.verdict.keys import key_hashes
from faultline.verdict.records import Batch, Record

_WINDOW_FIELDS = {"visit_id", "window_start", "window_end", "count", "first_event_time", "last_event_time"}
_HEADERS = sorted((SOURCE_PARTITION_HEADER, SOURCE_OFFSET_HEADER, REASON_HEADER))
_CLOSING = CLOSING_PREFIX.encode()
_VISIT_ID, _EVENT_TIME = b'"visit_id"', b'"event_time"'
_TIME_FORM = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_YEAR_9999 = 253_370_764_800_000

REASONS = {LATE_REASON: 1, NULL_VALUE: 2, NOT_UTF8: 4, NOT_ONE_OBJECT: 8, NO_VISIT_ID: 16, NO_EVENT_TIME: 32}
"""Reasons of a routed record as bits, so that several can be allowed together."""

_PLACE = [("kafka_partition", pa.int32()), ("kafka_offset", pa.int64())]
VISITS = pa.schema(
    [
        *_PLACE,
        # Digest of the visit_id; null: unparsable. Fixed width, since texts would not fit into memory.
        ("visit", pa.uuid()),
        # UTF-8 as bytes: JSON can escape half a surrogate pair, which a text column does not accept.
        ("visit_id", pa.binary()),
        ("closing", pa.bool_()),
        ("event_time", pa.int64()),
        ("window_end", pa.int64()),
        ("timestamp", pa.int64()),
        ("digest", pa.uuid()),
        ("reasons", pa.int32()),  # bits of REASONS that an unparsable record may be rejected for
    ]
)
WINDOWS = pa.schema(
    [
        *_PLACE,
        ("key_hash", pa.int64()),  # null: no key
        ("visit", pa.uuid()),
        ("visit_id", pa.binary()),
        ("window_end", pa.int64()),
        ("visit_count", pa.int64()),
        ("first_event_time", pa.int64()),
        ("last_event_time", pa.int64()),
        ("fault", pa.string()),  # null: a well-formed window
    ]
)
ROUTED = pa.schema(
    [
        *_PLACE,
        ("key_hash", pa.int64()),
        ("source_partition", pa.int32()),  # null: the headers name no record
        ("source_offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("digest", pa.uuid()),
        ("reason", pa.int32()),  # bit of REASONS; 0: none of them
    ]
)


@dataclass(frozen=True)
class VisitRows:
    """Turns records into rows of VISITS: two for windows of one length are equal, and another process can have one."""

    window_ms: int

    def __call__(self, batch: Batch) -> pa.RecordBatch:
        """Turn records of the source into rows of VISITS."""
        visits = [read_visit(value) for value in batch.values]
        ids = [None if visit is None else encode(visit.visit_id) for visit in visits]
        times = [None if visit is None else visit.event_time for visit in visits]
        return pa.record_batch(
            [
                batch.partitions,
                batch.offsets,
                pa.array([visit_id and digest(visit_id) for visit_id in ids], pa.uuid()),
                ids,
                [visit_id is not None and visit_id.startswith(_CLOSING) for visit_id in ids],
                times,
                [None if time is None else time - time % self.window_ms + self.window_ms for time in times],
                batch.timestamps,
                pa.array(batch.digests, pa.uuid()),
                [
                    None if visit else sum(REASONS[reason] for reason in refusal_reasons(value))
                    for visit, value in zip(visits, batch.values, strict=True)
                ],
            ],
            schema=VISITS,
        )


def read_visit(value: bytes | None) -> Visit | None:
    """Read a visit like `parse_visit`, in less than half of its time.

    orjson finds no visit where the rule finds none, but in objects nested too deep, and it takes two names for one when
    their hashes are the same. The rule decides on what is not a visit.
    """
    if value and _VISIT_ID in value and _EVENT_TIME in value and not _may_be_too_deep(value):
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError:
            return parse_visit(value)
        if isinstance(document, dict) and (visit := visit_of(document)):
            return visit
    return parse_visit(value)


def _may_be_too_deep(value: bytes) -> bool:
    return len(value) > MAX_NESTING and value.count(b"{") + value.count(b"[") > MAX_NESTING


class _Window(NamedTuple):
    visit: bytes | None = None
    visit_id: bytes | None = None
    window_end: int | None = None
    visits: int | None = None
    first: int | None = None
    last: int | None = None
    fault: str | None = None


def window_rows(batch: Batch, window_ms: int) -> pa.RecordBatch:
    """Turn records of the windows' topic into rows of WINDOWS."""
    read = [_window(record, window_ms) for record in batch.records()]
    visit, visit_id, end, visits, first, last, fault = zip(*read, strict=True)
    return pa.record_batch(
        [
            batch.partitions,
            batch.offsets,
            key_hashes(batch.keys),
            pa.array(visit, pa.uuid()),
            visit_id,
            end,
            visits,
            first,
            last,
            fault,
        ],
        schema=WINDOWS,
    )


def routed_rows(batch: Batch) -> pa.RecordBatch:
    """Turn records of the late or the rejected topic into rows of ROUTED."""
    places = [_headers(record) for record in batch.records()]
    partitions, offsets, reasons = zip(*places, strict=True)
    return pa.record_batch(
        [
            batch.partitions,
            batch.offsets,
            key_hashes(batch.keys),
            partitions,
            offsets,
            batch.timestamps,
            pa.array(batch.digests, pa.uuid()),
            reasons,
        ],
        schema=ROUTED,
    )


def _window(record: Record, window_ms: int) -> _Window:
    window = parse_window(record.value, window_ms)
    if isinstance(window, str):
        return _Window(fault=window)
    visit_id = encode(window.visit_id)
    fault = None
    if record.key != visit_id:
        fault = f"has the key {shown(record.key)}, not its visit_id"
    elif record.timestamp != window.window_end - 1:
        fault = f"has the record timestamp {_moment(record.timestamp)}, not its window's last millisecond"
    elif record.headers:
        fault = "has headers, which no window has"
    return _Window(
        digest(visit_id), visit_id, window.window_end, window.count, window.first_event_time,
        window.last_event_time, fault,
    )  # fmt: skip


def parse_window(value: bytes | None, window_ms: int) -> VisitWindow | str:
    """Read a window record, or return its fault; its times must make a window of that length."""
    try:
        text = (value or b"").decode("utf-8")
        plain = _PLAIN_WINDOW.fullmatch(text)
        pairs: object = plain.groupdict() | {"count": int(plain["count"])} if plain else _DECODER.decode(text)
    except (UnicodeDecodeError, ValueError, RecursionError):
        return f"is not JSON with each name once: {shown(value, 160)}"
    if not isinstance(pairs, dict) or pairs.keys() != _WINDOW_FIELDS:
        return f"does not have the fields of a window: {shown(value, 160)}"
    document: dict[str, object] = pairs
    visit_id, count = document["visit_id"], document["count"]
    if not isinstance(visit_id, str) or not isinstance(count, int) or type(count) is bool or not 0 <= count < 2**63:
        return f"has no valid visit_id or count: {shown(value, 160)}"
    start, end = _time(document["window_start"]), document["window_end"]
    first, last = _time(document["first_event_time"]), _time(document["last_event_time"])
    if start is None or first is None or last is None or not (isinstance(end, str) and _TIME_FORM.fullmatch(end)):
        return f"has a time that is not written as YYYY-MM-DDTHH:MM:SS.mmmZ: {shown(value, 160)}"
    # As a text: the last window ends with the year 9998, and no event time is later.
    if start % window_ms or end != _end_of(start, window_ms):
        return f"is not a window of {window_ms / 1000:g} s: {shown(value, 160)}"
    return VisitWindow(visit_id, start, start + window_ms, count, first, last)


@functools.lru_cache(maxsize=4096)
def _end_of(start: int, window_ms: int) -> str:
    """The end of a window as a text; many records are of the same window."""
    return iso_time(start + window_ms)


def _no_name_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name occurs twice")
    return document


_DECODER = json.JSONDecoder(object_pairs_hook=_no_name_twice)
_PLAIN_WINDOW = re.compile(
    r'\{"visit_id": ?"(?P<visit_id>[^"\\\x00-\x1f]+)", ?"window_start": ?"(?P<window_start>[0-9T:.Z-]+)", ?'
    r'"window_end": ?"(?P<window_end>[0-9T:.Z-]+)", ?"count": ?(?P<count>0|[1-9][0-9]{0,18}), ?'
    r'"first_event_time": ?"(?P<first_event_time>[0-9T:.Z-]+)", ?'
    r'"last_event_time": ?"(?P<last_event_time>[0-9T:.Z-]+)"\}'
)
"""Matches nearly every window that the job writes, without escapes; the decoder, which is slower, reads the others."""


def _time(text: object) -> int | None:
    """Read a time as `iso_time` writes it; a fraction below the millisecond, or `+00:00`, is a different text."""
    return parse_event_time(text) if isinstance(text, str) and len(text) == 24 and text[-1] == "Z" else None


def _moment(timestamp: int) -> str:
    if timestamp < 0:
        return "not set by the producer"
    return iso_time(timestamp) if timestamp < _YEAR_9999 else f"{timestamp}, which is no time in milliseconds"


def _headers(record: Record) -> tuple[int | None, int | None, int]:
    """Read the source record that a routed record names (nulls unless it has the three headers, each once), and why."""
    if sorted(name for name, _ in record.headers) != _HEADERS:
        return None, None, 0
    headers = dict(record.headers)
    partition = _decimal(headers[SOURCE_PARTITION_HEADER], 2**31)
    offset = _decimal(headers[SOURCE_OFFSET_HEADER], 2**63)
    if partition is None or offset is None:
        return None, None, 0
    reason = headers[REASON_HEADER] or b""
    return partition, offset, REASONS.get(reason.decode("utf-8", "replace"), 0)


def _decimal(text: bytes | None, limit: int) -> int | None:
    if text is None or not text.isdigit() or len(text) > 19 or (text[:1] == b"0" and len(text) > 1):
        return None
    number = int(text)
    return number if number < limit else None


def encode(visit_id: str) -> bytes:
    """Encode a visit_id for the tables; half a surrogate pair is kept apart from every other text."""
    return visit_id.encode("utf-8", "surrogatepass")


def decode(visit_id: object) -> str:
    """Decode a visit_id of the tables for a finding; a long one is cut."""
    return name_of(visit_id.decode("utf-8", "replace") if isinstance(visit_id, bytes) else str(visit_id))
