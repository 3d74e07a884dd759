"""Visit and VisitWindow: the JSON on the topics, and the one rule that says what is a visit.

A record of topic `visits` is a visit when its value is a UTF-8 JSON object with
- `visit_id`: a non-empty string, and
- `event_time`: a string `YYYY-MM-DDTHH:MM:SS[.f…]Z` or `…+00:00` (ISO 8601, UTC, 1 to 9 fraction
  digits, cut to milliseconds) that names a real moment from year 0001 on.
Anything else is unparsable and belongs on `visits_rejected`. Other fields are not looked at.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EVENT_TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|\+00:00)$"
_EVENT_TIME = re.compile(EVENT_TIME_PATTERN, re.ASCII)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SOURCE_PARTITION_HEADER = "source.partition"
SOURCE_OFFSET_HEADER = "source.offset"
REASON_HEADER = "reason"
"""Headers of every record on `visits_late` and `visits_rejected`, decimal or plain text in UTF-8:
they name the one record of `visits` that it stands for; key, value and timestamp are that record's."""


@dataclass(frozen=True)
class Visit:
    """What the pipelines read of a visit: `visit_id`, and `event_time` in milliseconds since the epoch."""

    visit_id: str
    event_time: int


@dataclass(frozen=True)
class VisitWindow:
    """One window of one visit; times in milliseconds since the epoch, `window_end` exclusive.

    JSON on `visit_windows`: `{"visit_id", "window_start", "window_end", "count", "first_event_time",
    "last_event_time"}`, times as written by `iso_time`.
    """

    visit_id: str
    window_start: int
    window_end: int
    count: int
    first_event_time: int
    last_event_time: int


@functools.lru_cache(maxsize=65536)
def _whole_second(text: str) -> int | None:
    """Milliseconds since the epoch of `YYYY-MM-DDTHH:MM:SS`; neighbouring visits share their second."""
    try:
        parsed = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return (parsed - EPOCH) // timedelta(milliseconds=1)


def parse_event_time(text: str) -> int | None:
    """Milliseconds since the epoch of an event time, or None when it is not one."""
    if not _EVENT_TIME.fullmatch(text):  # match() would let a trailing newline pass
        return None
    moment, _, fraction = text.removesuffix("Z").removesuffix("+00:00").partition(".")
    second = _whole_second(moment)
    return None if second is None else second + int(fraction[:3].ljust(3, "0"))


def iso_time(milliseconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ` of milliseconds since the epoch."""
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def _refuse_constant(name: str) -> float:
    """NaN and Infinity are Python's extension; no JSON document has them."""
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_visit(value: bytes | None) -> Visit | None:
    """The visit in a record's value, or None when it is unparsable by the rule above."""
    try:
        document = _DECODER.decode((value or b"").decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    visit_id, event_time = document.get("visit_id"), document.get("event_time")
    if not isinstance(visit_id, str) or not visit_id or not isinstance(event_time, str):
        return None
    milliseconds = parse_event_time(event_time)
    return None if milliseconds is None else Visit(visit_id, milliseconds)


def output_line(value: bytes | None) -> bytes:
    """The line that the synchronizer writes for a record of `visits`.

    The value as it is, but each run of CR and LF becomes one space: in JSON these stand only between
    tokens, so the document stays the same and every record stays one line. A null value is an empty line.
    """
    return re.sub(rb"[\r\n]+", b" ", value or b"")
