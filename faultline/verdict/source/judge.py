"""The judge of the source: each acknowledged visit is one record where it was acknowledged. I/O: its tables only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from faultline.formats.verdict import Outcome, Verdict
from faultline.verdict.model import NotJudged, Unknown, plural
from faultline.verdict.records import Spans
from faultline.verdict.source.ledger import LedgerSummary
from faultline.verdict.store import Store

_BUCKET = 1_000_000
"""Rows per join: their hash table fits several times into the store's memory."""


@dataclass(frozen=True)
class SourceFacts:
    """Facts that the judge must know besides the tables `source_record`, `ledger_sent` and `ledger_acked`.

    `spans`: the part of the topic that was read. Without `caught_up`, a visit after that part is not lost: the visit
    came later.
    """

    topic: str
    spans: Spans
    ledgers: LedgerSummary
    caught_up: bool


@dataclass(frozen=True)
class _Counts:
    """Visits and records by their fate.

    `acknowledged` and `beyond` count acknowledged visits: judged, and not. `excused` counts the records of
    `unacknowledged` visits.
    """

    records: int
    acknowledged: int
    beyond: int
    unacknowledged: int
    lost: int
    excused: int
    duplicated: int
    unexpected: int


_TABLES = """
CREATE OR REPLACE TABLE visit (
    file INTEGER, number BIGINT, kafka_partition INTEGER, timestamp BIGINT, digest UUID,
    acked_partition INTEGER, kafka_offset BIGINT, clock BIGINT
);
CREATE OR REPLACE TABLE lost (
    file INTEGER, number BIGINT, kafka_partition INTEGER, timestamp BIGINT, digest UUID, kafka_offset BIGINT
);
CREATE OR REPLACE TABLE spare (kafka_partition INTEGER, kafka_offset BIGINT, timestamp BIGINT, digest UUID);
CREATE OR REPLACE TABLE span (kafka_partition INTEGER, end_offset BIGINT);
"""

_VISITS = """
INSERT INTO visit
SELECT file, number, sent.kafka_partition, timestamp, digest, acked.kafka_partition, kafka_offset, acked.clock
FROM (SELECT * FROM ledger_sent WHERE file = $file AND number >= $begin AND number < $end) sent
LEFT JOIN (SELECT * FROM ledger_acked WHERE file = $file AND number >= $begin AND number < $end) acked
USING (file, number)
"""

_VISITS_OF_BUCKET = """
    SELECT * FROM visit WHERE kafka_partition = $partition AND kafka_offset >= $begin AND kafka_offset < $end
"""
_RECORDS_OF_BUCKET = """
    SELECT * FROM source_record WHERE kafka_partition = $partition AND kafka_offset >= $begin AND kafka_offset < $end
"""

_LOST = f"""
INSERT INTO lost SELECT file, number, kafka_partition, timestamp, digest, kafka_offset
FROM ({_VISITS_OF_BUCKET}) ANTI JOIN ({_RECORDS_OF_BUCKET}) USING (kafka_offset, timestamp, digest)
"""

# Two visits may be acknowledged at one place: a broker that lost its newest records reuses their offsets.
# The record there is the one of them that was acknowledged last.
_LOST_TO_ANOTHER = f"""
INSERT INTO lost SELECT file, number, kafka_partition, timestamp, digest, kafka_offset
FROM ({_VISITS_OF_BUCKET}) SEMI JOIN ({_RECORDS_OF_BUCKET}) USING (kafka_offset, timestamp, digest)
QUALIFY row_number() OVER (PARTITION BY kafka_offset ORDER BY clock DESC, file DESC, number DESC) > 1
"""

_SPARE = f"""
INSERT INTO spare SELECT kafka_partition, kafka_offset, timestamp, digest
FROM ({_RECORDS_OF_BUCKET}) ANTI JOIN ({_VISITS_OF_BUCKET}) USING (kafka_offset, timestamp, digest)
"""

_LOST_BEYOND = """
INSERT INTO lost SELECT file, number, kafka_partition, timestamp, digest, kafka_offset
FROM visit LEFT JOIN span USING (kafka_partition) WHERE kafka_offset >= coalesce(end_offset, 0)
"""

# A visit that was sent and not acknowledged excuses one record with its content, partition and timestamp.
_EXCUSED = """
CREATE OR REPLACE TABLE excused AS
WITH unacknowledged AS (
    SELECT digest, kafka_partition, timestamp, count(*) AS times FROM visit WHERE kafka_offset IS NULL GROUP BY ALL
), candidate AS (
    SELECT *, row_number() OVER (PARTITION BY digest, kafka_partition, timestamp ORDER BY kafka_offset) AS turn
    FROM spare SEMI JOIN unacknowledged USING (digest, kafka_partition, timestamp)
)
SELECT kafka_partition, kafka_offset FROM candidate JOIN unacknowledged USING (digest, kafka_partition, timestamp)
WHERE turn <= times
"""

# Of several visits with one content the first is named.
_EXTRA = """
CREATE OR REPLACE TABLE extra AS
WITH unexcused AS (
    FROM spare ANTI JOIN excused USING (kafka_partition, kafka_offset)
), known AS (
    SELECT digest, min({'file': file, 'number': number}) AS visit
    FROM visit SEMI JOIN unexcused USING (digest) GROUP BY digest
)
SELECT kafka_partition, kafka_offset, known.visit.file AS file, known.visit.number AS number
FROM unexcused LEFT JOIN known USING (digest)
"""


_JUDGED = """
SELECT count(*) FILTER (kafka_offset >= coalesce(end_offset, 0)), count(*) FILTER (kafka_offset < end_offset),
       (SELECT count(*) FROM source_record)
FROM visit LEFT JOIN span USING (kafka_partition)
"""

_FATES = """
SELECT (SELECT count(*) FROM visit WHERE kafka_offset IS NULL), (SELECT count(*) FROM lost),
       (SELECT count(*) FROM excused), count(number), count(*) - count(number)
FROM extra
"""

_CONTRADICTION = """
SELECT file, number FROM visit GROUP BY file, number
HAVING count(*) > 1 OR bool_or(acked_partition <> kafka_partition)
ORDER BY file, number LIMIT 1
"""


def not_judged(topic: str, others: int) -> NotJudged:
    """Build the note that a topic has no ledger, with the number of ledgers of deleted topics of its name."""
    left_out = f" ({plural(others, 'ledger')} of a deleted topic of this name left out)" if others else ""
    return NotJudged(f"no ledger: topic {topic} was written by other programs, so what was sent is not known{left_out}")


def judge(store: Store, facts: SourceFacts) -> Verdict:
    """Compare the topic with its ledgers; leaves tables `lost` and `extra`. Raises Unknown when a ledger is damaged."""
    store.connection.execute(_TABLES)
    _join_visits(store, facts.ledgers)
    for partition, span in facts.spans.items():
        store.execute("INSERT INTO span VALUES ($partition, $end)", partition=partition, end=span.end)
    buckets = list(_buckets(facts.spans))
    for bucket in buckets:
        store.execute(_LOST, **bucket)
        store.execute(_SPARE, **bucket)
    beyond, judged, records = store.numbers(_JUDGED)
    lost, spare = store.numbers("SELECT (SELECT count(*) FROM lost), (SELECT count(*) FROM spare)")
    if judged - lost > records - spare:
        for bucket in buckets:
            store.execute(_LOST_TO_ANOTHER, **bucket)
    if facts.caught_up:
        store.execute(_LOST_BEYOND)
        beyond, judged = 0, judged + beyond
    store.execute(_EXCUSED)
    store.execute(_EXTRA)
    return _verdict(facts, _Counts(records, judged, beyond, *store.numbers(_FATES)))


def _join_visits(store: Store, ledgers: LedgerSummary) -> None:
    """Fill table `visit`: what was sent, and where it was acknowledged."""
    for file, sent in enumerate(ledgers.sent):
        for begin in range(0, sent, _BUCKET):
            store.execute(_VISITS, file=file, begin=begin, end=begin + _BUCKET)
    visits, acked, moved = store.numbers(
        "SELECT count(*), count(kafka_offset), count(*) FILTER (acked_partition <> kafka_partition) FROM visit"
    )
    if moved or visits != sum(ledgers.sent) or acked != ledgers.acked:
        file, number = store.numbers(_CONTRADICTION)
        raise Unknown(
            f"ledger {ledgers.files[file]} contradicts itself about visit {number}: the file is damaged, "
            "so what was sent is not known"
        )


def _buckets(spans: Spans) -> Iterator[dict[str, int]]:
    for partition, span in spans.items():
        for begin in range(span.begin, span.end, _BUCKET):
            yield {"partition": partition, "begin": begin, "end": min(begin + _BUCKET, span.end)}


def _verdict(facts: SourceFacts, counts: _Counts) -> Verdict:
    outcome, reason = _outcome(facts, counts)
    there = counts.records - counts.excused - counts.duplicated - counts.unexpected
    return Verdict(
        pipeline="source",
        outcome=outcome,
        reason=reason,
        expected=counts.acknowledged + counts.excused,
        observed=counts.records,
        lost=counts.lost,
        duplicated=counts.duplicated,
        unexpected=counts.unexpected,
        notes=tuple(_notes(facts, counts)),
        records={
            "source": counts.records,
            "acknowledged": there,
            "unacknowledged": counts.excused,
            "duplicated": counts.duplicated,
            "unexpected": counts.unexpected,
        },
    )


def _outcome(facts: SourceFacts, counts: _Counts) -> tuple[Outcome, str]:
    topic = facts.topic
    if counts.lost or counts.duplicated or counts.unexpected:
        return Outcome.VIOLATED, f"topic {topic} does not have each visit that the generator sent exactly once"
    if not counts.records:
        return Outcome.UNKNOWN, f"topic {topic} is empty and no visit was acknowledged: there is nothing to compare"
    return Outcome.HOLDS, f"topic {topic} has every acknowledged visit once, where it was acknowledged, and no other"


def _notes(facts: SourceFacts, counts: _Counts) -> Iterator[str]:
    if counts.unacknowledged:
        there = f"{counts.excused:,} of them in the topic"
        yield f"{plural(counts.unacknowledged, 'visit')} sent without an acknowledgement, {there}: both are allowed"
    if counts.beyond:
        yield f"{plural(counts.beyond, 'visit')} acknowledged beyond the records that were read: not judged"
    if facts.ledgers.others:
        yield (
            f"{plural(facts.ledgers.others, 'ledger')} left out: of another topic that had the name {facts.topic} "
            "and was deleted"
        )
