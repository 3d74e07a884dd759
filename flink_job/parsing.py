"""SQL that decides what is a visit: the same rule as contract.visit.parse_visit, evaluated in the JVM.

One JSON pass a record. JSON_QUERY takes `event_time` and `visit_id` out of the document at once and prints
them in a fixed order and spelling, strings in quotes, numbers without; the rest is done on those few bytes.

Flink's JSON functions stop at the end of the first document and do not look at what follows. Therefore the
value is parsed as the first of two elements of an array, `[<value>,{"visit_id":"<end>"}]`: whatever follows
the document breaks the array, closes it before the end mark or adds an element, and the projection no longer
looks like one object and the end mark. (A further element that is no object would be left out of the
projection: so the value must also begin with `{` and end with `}`.) The end mark is random, made anew for
each submission, so that no value can contain it.

The steps stand in tables of their own, a DataStream between them. In one query the planner would put each
expression in place of every use of its name and parse the document nine times.
"""

from __future__ import annotations

from contract.visit import EVENT_TIME_PATTERN, VISIT_ID_PATTERN

_DAY_START = len('[{"event_time":"') + 1
_BETWEEN = '","visit_id":"'
IS_UTF8 = "ENCODE(record_value, 'UTF-8') = CAST(record_value AS BYTES)"
"""Decoding replaces what is not UTF-8, so encoding again does not give the same bytes."""


def tail(end_mark: str) -> str:
    """How the projection of one visit ends, after the visit_id."""
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


def _digits(start: int, length: int) -> str:
    """The number at a fixed place of the event time; `start` counts from its first character."""
    return f"CAST(SUBSTRING(projection, {_DAY_START + start}, {length}) AS INT)"


def event_time(end_mark: str) -> str:
    """Expression over `projection`: milliseconds since the epoch, or NULL where the record is no visit."""
    fraction = _DAY_START + 20
    is_digit = "SUBSTRING(projection, {}, 1) BETWEEN '0' AND '9'"
    milliseconds = f"""CASE
      WHEN SUBSTRING(projection, {fraction - 1}, 1) <> '.' THEN 0
      WHEN NOT {is_digit.format(fraction + 1)} THEN {_digits(20, 1)} * 100
      WHEN NOT {is_digit.format(fraction + 2)} THEN {_digits(20, 2)} * 10
      ELSE {_digits(20, 3)} END"""
    # NULL for a day that no calendar has; DATE casts know the lengths of months and leap years.
    day = f"TIMESTAMPDIFF(DAY, DATE '1970-01-01', TRY_CAST(SUBSTRING(projection, {_DAY_START}, 10) AS DATE))"
    return f"""CASE WHEN REGEXP(projection, '{visit_pattern(end_mark)}') THEN
    CAST({day} AS BIGINT) * 86400000
    + {_digits(11, 2)} * 3600000 + {_digits(14, 2)} * 60000 + {_digits(17, 2)} * 1000
    + {milliseconds} END"""


def visit_id(end_mark: str) -> str:
    """Expression over `projection`: the visit_id, where event_time() is not NULL."""
    start = f"POSITION('{_BETWEEN}' IN projection) + {len(_BETWEEN)}"
    length = f"CHAR_LENGTH(projection) - {len(tail(end_mark))} - ({start}) + 1"
    return f"SUBSTRING(projection, {start}, {length})"


def reason(end_mark: str) -> str:
    """Expression over `record_value` and `projection` of a record that is no visit: why it is none."""
    one_object = rf"""^\[\{{.*\}},\{{"visit_id":"{end_mark}"\}}\]\z"""
    good_id = rf'"visit_id":"{VISIT_ID_PATTERN}"\}},'.replace("'", "''")
    return f"""CASE
    WHEN record_value IS NULL THEN 'null value'
    WHEN NOT {IS_UTF8} THEN 'not UTF-8'
    WHEN projection IS NULL OR NOT REGEXP(projection, '{one_object}') THEN 'not one JSON object'
    WHEN NOT REGEXP(projection, '{good_id}') THEN 'visit_id is missing or not usable'
    ELSE 'event_time is missing or not a UTC time' END"""
