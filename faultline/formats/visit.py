r"""Visit and VisitWindow: the JSON on the topics, and the one rule that defines a visit.

A record of topic `visits` is a visit when its value is one JSON object in UTF-8 and nothing else, with
- `visit_id`: a non-empty string without `"`, `\`, control characters and lone surrogates, and
- `event_time`: a string `YYYY-MM-DDTHH:MM:SS[.f…]Z` or `…+00:00` (ISO 8601, UTC, 1 to 9 fraction
  digits, cut to milliseconds) that names a real moment in the years 1970 to 9998.
Anything else is unparsable and belongs on `visits_rejected`. Other fields are ignored; of a name that
occurs twice the last one counts.

Nesting is at most 999 deep, so that no parser overflows its stack. A visit_id is text that JSON and UTF-8 write as
it is. A Kafka record has no timestamp before 1970, so no window has.

The windowing job applies the same rule in Java (flink_job/java/faultline/visits/VisitRule.java), with the patterns and
reasons of this module.
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeGuard

EVENT_TIME_PATTERN = r"(?!9999)(19[7-9]|[2-9]\d\d)\d-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|\+00:00)"
"""Checks an event time except for the lengths of the months; works the same in Python and Java."""
VISIT_ID_PATTERN = r'[^"\\\x00-\x1f\ud800-\udfff]+'
"""Checks a visit_id; works the same in Python and Java, which both match code points."""
_EVENT_TIME = re.compile(EVENT_TIME_PATTERN, re.ASCII)
_VISIT_ID = re.compile(VISIT_ID_PATTERN)

MAX_NESTING = 999
MOST_BYTES_OF_A_COPY = 2 << 20
"""Bytes that a record of the job may have: a rejected visit has three headers more than the original."""
_FLAT = 50
"""A text with at most this many opening brackets is decoded as it is: it needs few levels of the stack."""
_SLICE = 64
_UP = ord("+")
_LINE_BREAKS = re.compile(rb"[\r\n]+")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SOURCE_PARTITION_HEADER = "source.partition"
SOURCE_OFFSET_HEADER = "source.offset"
REASON_HEADER = "reason"
"""Headers of every record on `visits_late` and `visits_rejected`, each once, decimal or plain text in UTF-8:
they name the one record of `visits` that it is a copy of; key, value and timestamp are that record's."""
LATE_REASON = "window is over"
"""Reason of every record on `visits_late`."""
NULL_VALUE, NOT_UTF8, NOT_ONE_OBJECT = "null value", "not UTF-8", "not one JSON object"
NO_VISIT_ID, NO_EVENT_TIME = "visit_id is missing or not usable", "event_time is missing or not a UTC time"
REFUSAL_REASONS = (NULL_VALUE, NOT_UTF8, NOT_ONE_OBJECT, NO_VISIT_ID, NO_EVENT_TIME)
"""Reasons on `visits_rejected`; the first that applies."""

CLOSING_PREFIX = "closing-"
"""Prefix of the visit_id of visits that are sent to close open windows. The jobs treat them like all others."""


class Visit(NamedTuple):
    """The fields of a visit that the pipelines use: `visit_id`, and `event_time` in milliseconds since the epoch."""

    visit_id: str
    event_time: int


@dataclass(frozen=True, slots=True)
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
    if not _EVENT_TIME.fullmatch(f"{text}Z"):  # match() would let a trailing newline pass
        return None
    try:
        parsed = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return (parsed - EPOCH) // timedelta(milliseconds=1)


def parse_event_time(text: str) -> int | None:
    """Milliseconds since the epoch of an event time, or None when the text is not an event time."""
    fraction = text[20:23]
    # The form that `iso_time` writes; nearly every event time has it.
    if len(text) == 24 and text[19] == "." and text[23] == "Z" and fraction.isascii() and fraction.isdigit():
        second = _whole_second(text[:19])
        return None if second is None else second + int(fraction)
    if not _EVENT_TIME.fullmatch(text):
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


# The values of numbers are not needed, and computing a long one is slow.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=len, parse_float=len)
_UP_AND_DOWN = bytes.maketrans(b"[{]}", b"++--")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def _is_nested_too_deep(text: str) -> bool:
    """Look at the brackets outside of strings, in time that grows with the text's length, whatever the text is."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(unescaped.split('"')[::2]).encode()
    steps = outside.translate(_UP_AND_DOWN, _NO_BRACKETS)
    depth = 0
    for begin in range(0, len(steps), _SLICE):
        part = steps[begin : begin + _SLICE]
        ups = part.count(b"+")
        if depth + ups > MAX_NESTING:
            changes = (1 if step == _UP else -1 for step in part)
            if max(itertools.accumulate(changes, initial=depth)) > MAX_NESTING:
                return True
        depth += 2 * ups - len(part)
    return False


def _decode_nested(text: str) -> object:
    """Parse a text that may be nested too deep. Raises ValueError."""
    if _is_nested_too_deep(text):
        raise ValueError("nested too deep")
    usual, collects = sys.getrecursionlimit(), gc.isenabled()
    # The garbage collector would walk through the nested lists over and over.
    gc.disable()
    # The decoder recurses once per level; the caller's stack depth must not decide what is a visit.
    sys.setrecursionlimit(usual + 2 * MAX_NESTING)
    try:
        return _DECODER.decode(text)
    finally:
        sys.setrecursionlimit(usual)
        if collects:
            gc.enable()


def _object(value: bytes | None) -> dict[str, object] | None:
    """The one JSON object in a record's value, or None when the value is something else."""
    try:
        text = (value or b"").decode("utf-8")
        if text.lstrip(" \t\r\n")[:1] != "{":
            return None
        is_flat = text.count("[") + text.count("{") <= _FLAT
        document = _DECODER.decode(text) if is_flat else _decode_nested(text)
    except (UnicodeDecodeError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _usable_visit_id(visit_id: object) -> TypeGuard[str]:
    return isinstance(visit_id, str) and _VISIT_ID.fullmatch(visit_id) is not None


def parse_visit(value: bytes | None) -> Visit | None:
    """The visit in a record's value, or None when it is unparsable by the rule above."""
    return visit_of(_object(value) or {})


def visit_of(document: Mapping[str, object]) -> Visit | None:
    """The visit in a record's JSON object, or None when a field is not usable."""
    visit_id, event_time = document.get("visit_id"), document.get("event_time")
    if not _usable_visit_id(visit_id) or not isinstance(event_time, str):
        return None
    milliseconds = parse_event_time(event_time)
    return None if milliseconds is None else Visit(visit_id, milliseconds)


def refusal_reasons(value: bytes | None) -> tuple[str, ...]:
    """The reasons that `visits_rejected` may give for an unparsable value.

    There are several when the value is wrong in more than one way: a job may look for the two fields before it looks at
    the document around them.
    """
    if value is None:
        return (NULL_VALUE,)
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return (NOT_UTF8,)
    document = _object(value)
    if document is None:
        return (NOT_ONE_OBJECT, NO_VISIT_ID, NO_EVENT_TIME)
    if _usable_visit_id(document.get("visit_id")):
        return (NO_EVENT_TIME,)
    event_time = document.get("event_time")
    if isinstance(event_time, str) and parse_event_time(event_time) is not None:
        return (NO_VISIT_ID,)
    return (NO_VISIT_ID, NO_EVENT_TIME)


def output_line(value: bytes | None) -> bytes:
    """The line that the synchronizer writes for a record of `visits`.

    The value unchanged, except that each run of CR and LF becomes one space: in JSON these occur only between
    tokens, so the document stays the same and every record stays one line. A null value is an empty line.
    """
    line = value or b""
    # Almost no value has a line break, and two searches cost a tenth of the regular expression.
    return _LINE_BREAKS.sub(b" ", line) if b"\n" in line or b"\r" in line else line
