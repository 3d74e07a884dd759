"""SQL that defines a visit: the same rule as contract.visit.parse_visit, evaluated in the JVM.

One JSON pass per record. JSON_QUERY takes `event_time` and `visit_id` out of the document at once and prints
them in a fixed order and spelling, strings in quotes, numbers without; the other steps use only those few bytes.

Flink's JSON functions stop at the end of the first document and ignore what follows. Therefore the
value is parsed as the first of two elements of an array, `[<value>,{"visit_id":"<end>"}]`: any text after
the document breaks the array, closes it before the end mark or adds an element, and the projection no longer
looks like one object and the end mark. (A further element that is not an object would be missing from the
projection: so the value must also begin with `{` and end with `}`.) The end mark is random and new for
each submission, so that no value can contain it.

Each step is its own table, with a DataStream between them. In one query the planner would replace every use
of a name by its expression and parse the document nine times.
"""

from __future__ import annotations

from contract.visit import (
    EVENT_TIME_PATTERN,
    NO_EVENT_TIME,
    NO_VISIT_ID,
    NOT_ONE_OBJECT,
    NOT_UTF8,
    NULL_VALUE,
    VISIT_ID_PATTERN,
)

_BETWEEN = '","visit_id":"'
IS_UTF8 = "ENCODE(record_value, 'UTF-8') = CAST(record_value AS BYTES)"
"""Decoding replaces bytes that are not UTF-8, so encoding again does not give the same bytes."""


def tail(end_mark: str) -> str:
    """The end of the projection of one visit, after the visit_id."""
    return f'"}},{{"visit_id":"{end_mark}"}}]'


def projection(end_mark: str) -> str:
    """Expression over `record_value`: `[{"event_time":…,"visit_id":…},{"visit_id":"<end>"}]`, or NULL.

    NULL when the value is NULL, not UTF-8, or does not begin as one JSON document.
    """
    array = f"""CONCAT('[', record_value, ',{{"visit_id":"{end_mark}"}}]')"""
    query = f"JSON_QUERY({array}, '$[*][''event_time'',''visit_id'']' NULL ON EMPTY NULL ON ERROR)"
    # Nearly every value passes the cheap test.
    braces = r"REGEXP(record_value, '(?s)^[ \t\n\r]*\{.*\}[ \t\n\r]*\z')"
    is_object = f"((STARTSWITH(record_value, '{{') AND ENDSWITH(record_value, '}}')) OR {braces})"
    return f"CASE WHEN {IS_UTF8} AND {is_object} THEN {query} END"


def visit_pattern(end_mark: str) -> str:
    """Regular expression of the projection of a visit, as an SQL literal's content."""
    pattern = r'^\[\{"event_time":"' + EVENT_TIME_PATTERN + '","visit_id":"' + VISIT_ID_PATTERN
    pattern += r'"\},\{"visit_id":"' + end_mark + r'"\}\]\z'
    return pattern.replace("'", "''")


def pieces(end_mark: str) -> str:
    """Expressions over `projection`, each computed once: `is_visit` (except for the day), `moment`, `id_start`.

    `moment` is the event time's first 23 characters; after a shorter one it contains what follows.
    """
    return f"""REGEXP(projection, '{visit_pattern(end_mark)}') AS is_visit,
  SUBSTRING(projection, {len('[{"event_time":"') + 1}, {len("2026-01-01T00:00:00.000")}) AS moment,
  POSITION('{_BETWEEN}' IN projection) + {len(_BETWEEN)} AS id_start"""


def _digits(start: int, length: int) -> str:
    """Return the expression of the number at a fixed position of `moment`; positions count from 1."""
    return f"CAST(SUBSTRING(moment, {start}, {length}) AS INT)"


def event_time() -> str:
    """Return the expression over `pieces`: milliseconds since the epoch, or NULL when the record is not a visit."""
    is_digit = "SUBSTRING(moment, {}, 1) BETWEEN '0' AND '9'"
    # With fewer than three digits a letter or a sign follows, and the text is not a number.
    milliseconds = f"""CASE
      WHEN SUBSTRING(moment, 20, 1) <> '.' THEN 0
      ELSE COALESCE(TRY_CAST(SUBSTRING(moment, 21, 3) AS INT), CASE
        WHEN {is_digit.format(22)} THEN {_digits(21, 2)} * 10
        ELSE {_digits(21, 1)} * 100 END) END"""
    # NULL for a day that does not exist; DATE casts know the lengths of months and leap years.
    day = "TIMESTAMPDIFF(DAY, DATE '1970-01-01', TRY_CAST(SUBSTRING(moment, 1, 10) AS DATE))"
    return f"""CASE WHEN is_visit THEN CAST({day} AS BIGINT) * 86400000
    + {_digits(12, 2)} * 3600000 + {_digits(15, 2)} * 60000 + {_digits(18, 2)} * 1000
    + {milliseconds} END"""


def visit_id(end_mark: str) -> str:
    """Return the expression over `pieces` and `projection`: the visit_id, where event_time() is not NULL."""
    return f"SUBSTRING(projection, id_start, CHAR_LENGTH(projection) - {len(tail(end_mark)) - 1} - id_start)"


def reason(end_mark: str) -> str:
    """Return the expression over `record_value` and `projection` of the reason why a record is not a visit."""
    one_object = rf"""^\[\{{.*\}},\{{"visit_id":"{end_mark}"\}}\]\z"""
    good_id = rf'"visit_id":"{VISIT_ID_PATTERN}"\}},'.replace("'", "''")
    return f"""CASE
    WHEN record_value IS NULL THEN '{NULL_VALUE}'
    WHEN ENCODE(DECODE(record_value, 'UTF-8'), 'UTF-8') <> record_value THEN '{NOT_UTF8}'
    WHEN projection IS NULL OR NOT REGEXP(projection, '{one_object}') THEN '{NOT_ONE_OBJECT}'
    WHEN NOT REGEXP(projection, '{good_id}') THEN '{NO_VISIT_ID}'
    ELSE '{NO_EVENT_TIME}' END"""
