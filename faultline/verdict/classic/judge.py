"""The judge of the classic job: each window of each visit once, with the right count.

Its records have no key, no timestamp of their own and no headers, so only their content is judged. A visit is either
in its window or on the topic of late visits; which of the two is right cannot be known without the source's offsets, so
both are accepted. Records that the job drops because they cannot be parsed are counted and accepted, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from faultline.formats.verdict import CATEGORIES, Finding, Outcome, Verdict
from faultline.formats.visit import iso_time
from faultline.verdict.escape import name_of, printable
from faultline.verdict.flink.reader import decode
from faultline.verdict.model import Judgement, first_findings, plural
from faultline.verdict.store import Store


@dataclass(frozen=True)
class ClassicFacts:
    """Facts that the judge must know besides its tables.

    `windows`, `late`: the topics; `window_ms`: the length of a window; `closed`: the end of the last window that every
    partition has passed, in ms; `positions`: up to where the job has committed its decisions, by partition of the
    source; `caught_up`: it has committed everything.
    """

    windows: str
    late: str
    window_ms: int
    closed: int
    positions: Mapping[int, int]
    caught_up: bool


# Per visit_id and event time: how often it was sent, and is on the late topic.
_LATE_COPIES = """
CREATE OR REPLACE TABLE late_copies AS
SELECT visit, window_end, any_value(visit_id) AS visit_id, event_time, sum(sent) AS sent, sum(late) AS late
FROM (
    SELECT visit, window_end, visit_id, event_time, 1 AS sent, 0 AS late FROM visits WHERE visit IS NOT NULL
    UNION ALL SELECT visit, window_end, visit_id, event_time, 0, 1 FROM late WHERE visit IS NOT NULL
) GROUP BY visit, window_end, event_time HAVING sum(late) > 0
"""

_POSITIONS = pa.schema([("kafka_partition", pa.int32()), ("position", pa.int64())])

# Per visit_id and window: the visits of the source without those on the late topic, those of them that the job may not
# have decided yet, and what is written.
_ACCOUNT = """
CREATE OR REPLACE TABLE account AS
SELECT visit, window_end, any_value(visit_id) AS visit_id, coalesce(bool_or(closing), false) AS closing,
    sum(expected) AS expected, sum(undecided) AS undecided, count(counted) AS records,
    coalesce(sum(counted), 0) AS counted, min(counted) AS least, max(counted) AS most
FROM (
    SELECT visit, window_end, visit_id, closing, 1 AS expected,
        CAST(kafka_offset >= coalesce(position, 0) AS INTEGER) AS undecided, NULL AS counted
    FROM visits LEFT JOIN positions USING (kafka_partition) WHERE visit IS NOT NULL
    UNION ALL SELECT visit, window_end, visit_id, NULL, -least(sent, late), 0, NULL FROM late_copies
    UNION ALL SELECT visit, window_end, visit_id, NULL, 0, 0, visit_count FROM windows WHERE visit IS NOT NULL
) GROUP BY visit, window_end
"""

# A window with other figures is lost and unexpected; every record after its first is duplicated. Windows
# of closing visits are counted apart unless something is wrong with them.
_FATES = """
CREATE OR REPLACE TABLE fates AS
SELECT *,
    greatest(records - 1, 0) AS duplicated,
    CAST(expected > 0 AND (wrong OR (records = 0 AND due)) AS INTEGER) AS lost,
    CAST(expected > 0 AND records = 0 AND NOT due AS INTEGER) AS pending,
    CAST(wrong OR (expected <= 0 AND records > 0) AS INTEGER) AS unexpected
FROM (
    SELECT *, $caught_up AND window_end <= $closed AS due,
        records > 0 AND (least < expected - undecided OR most > expected) AS wrong
    FROM account
) WHERE NOT closing OR wrong OR records > 1 OR (due AND records = 0 AND expected > 0)
"""

_FINDINGS = {
    "lost": "window {id} {start} should count {expected}, and no record does; written: {records}",
    "duplicated": "window {id} {start} is there {times} times; {expected} in the source, {counted} counted in all",
    "unexpected": "window {id} {start} counts {counted} in {records}; the source has {expected} for it",
    "pending": "window {id} {start} is open or not committed",
}
_LATE_FINDINGS = {
    "duplicated": "visit {id} of {time} is among the late visits {late} times and was sent {sent} times",
    "unexpected": "visit {id} of {time} is among the late visits and was never sent",
}


def judge(store: Store, facts: ClassicFacts) -> Judgement:
    """Judge tables `visits`, `late` (rows of the reader's VISITS) and `windows` (rows of WINDOWS)."""
    store.create("positions", _POSITIONS)
    store.append("positions", pa.table([list(facts.positions), list(facts.positions.values())], schema=_POSITIONS))
    store.execute(_LATE_COPIES)
    store.execute(_ACCOUNT)
    store.execute(_FATES, caught_up=facts.caught_up, closed=facts.closed)
    expected, observed, lost, duplicated, unexpected, pending = store.numbers(
        """SELECT count(*) FILTER (WHERE expected > 0), sum(records), sum(lost), sum(duplicated), sum(unexpected),
               sum(pending) FROM fates"""
    )
    (unreadable,) = store.numbers(
        "SELECT count(*) FROM (SELECT visit FROM windows UNION ALL SELECT visit FROM late) WHERE visit IS NULL"
    )
    unparsable, closing = store.numbers(
        """SELECT count(*) FILTER (WHERE visit IS NULL),
               sum(coalesce(expected, 0)) FILTER (WHERE closing) FROM (
                   SELECT visit, NULL AS expected, false AS closing FROM visits WHERE visit IS NULL
                   UNION ALL SELECT visit, expected, true FROM account ANTI JOIN fates USING (visit, window_end)
                   WHERE closing)"""
    )
    late, invented, repeated = store.numbers(
        """SELECT sum(least(sent, late)), sum(late) FILTER (WHERE sent = 0),
               sum(greatest(late - sent, 0)) FILTER (WHERE sent > 0) FROM late_copies"""
    )
    source, waiting, missing = store.numbers(
        """SELECT (SELECT count(*) FROM visits), sum(open_visits),
               sum(greatest(expected - counted, 0) - open_visits) FILTER (WHERE expected > 0) FROM (
                   SELECT *, CASE WHEN pending > 0 THEN expected WHEN expected <= 0 THEN 0
                       ELSE least(undecided, greatest(expected - counted, 0)) END AS open_visits FROM fates)"""
    )
    unexpected += unreadable + invented
    duplicated += repeated
    find = partial(_findings, store, facts)
    counts = {"lost": lost, "duplicated": duplicated, "unexpected": unexpected}
    outcome, reason = _outcome(source, counts, pending, waiting, facts)
    verdict = Verdict(
        "classic",
        outcome,
        reason,
        expected=expected,
        observed=observed + unreadable + invented + repeated,
        lost=lost,
        duplicated=duplicated,
        unexpected=unexpected,
        pending=pending,
        late=late,
        closing=closing,
        examples=first_findings(find, CATEGORIES),
        notes=(f"{plural(unparsable, 'record')} of the source cannot be parsed: the job drops them without a trace",),
        records={
            "source": source,
            "in windows": source - unparsable - closing - late - waiting - missing,
            "late": late,
            "unparsable": unparsable,
            "closing": closing,
            "pending": waiting,
            "lost": missing,
        },
    )
    return Judgement(verdict, find)


def _outcome(
    source: int, counts: dict[str, int], pending: int, waiting: int, facts: ClassicFacts
) -> tuple[Outcome, str]:
    if any(counts.values()):
        wrong = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        return Outcome.VIOLATED, f"windows of {facts.windows}: {wrong}"
    if not source:
        return Outcome.UNKNOWN, "the source is empty: nothing to judge; start the generator"
    if pending:
        return Outcome.UNKNOWN, f"{plural(pending, 'window')} open or not committed; close them with scripts/settle.sh"
    if waiting:
        return Outcome.HOLDS, f"the windows are right so far, {plural(waiting, 'visit')} pending"
    return Outcome.HOLDS, "every visit that can be parsed is in one window or late"


def _findings(store: Store, facts: ClassicFacts, category: str) -> Iterator[Finding]:
    if category not in _FINDINGS:
        return
    rows = store.stream(
        f"""SELECT visit_id, window_end, expected, records, counted FROM fates WHERE {category} > 0
            ORDER BY window_end, visit_id"""
    )
    yield from _late_findings(store, facts, category)
    if category == "unexpected":
        yield from _unreadable_findings(store, facts)
    for visit_id, end, expected, records, counted in rows:
        start = int(str(end)) - facts.window_ms
        names: dict[str, object] = {
            "topic": facts.windows, "visit_id": decode(visit_id), "window_start": iso_time(start),
        }  # fmt: skip
        text = _FINDINGS[category].format(
            id=printable(name_of(decode(visit_id))),
            start=names["window_start"],
            expected=plural(int(str(expected)), "visit"),
            counted=int(str(counted)),
            records=plural(int(str(records)), "record"),
            times=records,
        )
        yield Finding(category, text, names)


def _unreadable_findings(store: Store, facts: ClassicFacts) -> Iterator[Finding]:
    for table, topic in (("windows", facts.windows), ("late", facts.late)):
        for partition, offset in store.stream(
            f"SELECT kafka_partition, kafka_offset FROM {table} WHERE visit IS NULL ORDER BY ALL"
        ):
            names: dict[str, object] = {"topic": topic, "partition": partition, "offset": offset}
            text = (
                f"{topic} partition {partition} offset {offset} cannot be read, and nothing in the source explains it"
            )
            yield Finding("unexpected", text, names)


def _late_findings(store: Store, facts: ClassicFacts, category: str) -> Iterator[Finding]:
    if category not in _LATE_FINDINGS:
        return
    condition = "sent = 0" if category == "unexpected" else "sent > 0 AND late > sent"
    for visit_id, event_time, sent, late in store.stream(
        f"SELECT visit_id, event_time, sent, late FROM late_copies WHERE {condition} ORDER BY event_time, visit_id"
    ):
        time = iso_time(int(str(event_time)))
        text = _LATE_FINDINGS[category].format(id=printable(name_of(decode(visit_id))), time=time, sent=sent, late=late)
        yield Finding(category, text, {"topic": facts.late, "visit_id": decode(visit_id), "event_time": time})
