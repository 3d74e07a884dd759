"""The judge of the synchronizer: each record of the topic is one line of the output, in its order.

No I/O except its tables. It uses `sent` and `lines` and creates, for the findings: `ends`, the offset from which on
records are not due yet; `odd`, a row for each distinct line that the output does not have as often as it was sent; and
`disorder`, a row for each line at a wrong place.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from faultline.formats.verdict import Outcome, Verdict
from faultline.verdict.escape import printable
from faultline.verdict.model import plural
from faultline.verdict.records import Spans
from faultline.verdict.spark.checkpoint import Commit
from faultline.verdict.spark.locations import Locations
from faultline.verdict.spark.output import Output
from faultline.verdict.store import Store

_BUCKET_ROWS = 4_000_000
"""Records and lines counted at a time: the counts of more of them would not fit in memory."""

_NEVER = 2**63 - 1
_ENDS = pa.schema([("kafka_partition", pa.int32()), ("end_offset", pa.int64())])
_BATCHES = pa.schema([("file", pa.int32()), ("batch", pa.int64())])
_CUT = pa.schema([("file", pa.int32()), ("unread_from", pa.int64())])


@dataclass(frozen=True)
class SparkFacts:
    """Facts that the judge must know besides the tables.

    `commit` is the newest committed batch (None: no batch yet); `caught_up`: every record of the source is due,
    otherwise only what that batch covers. Column `file` counts the files of `output` from 0.
    """

    places: Locations
    commit: Commit | None
    source: Spans
    output: Output
    caught_up: bool
    notes: tuple[str, ...] = ()


# One row per distinct line: how often it was sent, how often of these it is due, how often it is there, and how often
# in leftovers only. Equal lines are interchangeable. The columns of a place are those of the only
# record, or line, when there is only one. A line behind the logged size of its file is not read: it replaces no line
# that is missing, and counts as there when it is one too many.
_TALLY = """
CREATE OR REPLACE TEMP TABLE tally AS
SELECT *, greatest(due - seen, 0) AS lost,
       CASE WHEN sent > 0 THEN greatest(seen - sent, 0) ELSE 0 END AS duplicated,
       CASE WHEN sent = 0 THEN seen + spare ELSE 0 END AS unexpected,
       sent - due - least(greatest(seen - due, 0), sent - due) AS pending
FROM (
    SELECT digest, count(kafka_offset) AS sent, count(*) FILTER (WHERE due) AS due,
           count(*) FILTER (WHERE NOT leftover) AS there, count(*) FILTER (WHERE is_read) AS read,
           read + least(there - read, greatest(there - sent, 0)) AS seen,
           count(*) FILTER (WHERE leftover) AS spare,
           min(kafka_partition) AS kafka_partition, min(kafka_offset) AS kafka_offset,
           min(file) FILTER (WHERE NOT leftover) AS file, min(line) FILTER (WHERE NOT leftover) AS line
    FROM (
        SELECT digest, kafka_partition, kafka_offset, kafka_offset < end_offset AS due,
               NULL::BOOLEAN AS leftover, NULL::BOOLEAN AS is_read, NULL::INTEGER AS file, NULL::BIGINT AS line
        FROM sent JOIN ends USING (kafka_partition) WHERE hash(digest) % {buckets} = {bucket}
        UNION ALL
        SELECT digest, NULL, NULL, NULL, leftover, NOT leftover AND coalesce(position < unread_from, true), file, line
        FROM lines LEFT JOIN cut USING (file) WHERE hash(digest) % {buckets} = {bucket}
    )
    GROUP BY digest
)
"""

_SUMS = """
SELECT sum(sent), sum(seen), sum(lost), sum(duplicated), sum(unexpected), sum(pending),
       sum(spare) FILTER (WHERE sent = 0) FROM tally
"""

# Lines that come after one of a larger offset of the same partition, in their file or in an earlier batch. A
# record that was sent twice, or is there twice, has no single place.
_DISORDER = """
CREATE OR REPLACE TABLE disorder AS
WITH tops AS (
    SELECT kafka_partition, batch, max(max(kafka_offset)) OVER (
               PARTITION BY kafka_partition ORDER BY batch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS top
    FROM placed JOIN file_batch USING (file) GROUP BY kafka_partition, batch
), followed AS (
    SELECT *, max(kafka_offset) OVER (
               PARTITION BY kafka_partition, file ORDER BY line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS above
    FROM placed
)
SELECT kafka_partition, kafka_offset, file, line, greatest(above, top) AS after
FROM followed LEFT JOIN file_batch USING (file) LEFT JOIN tops USING (kafka_partition, batch)
WHERE kafka_offset < greatest(above, top)
"""


@dataclass(frozen=True)
class _Counts:
    """Sums over all distinct lines; `strange`: lines of leftovers that were never sent."""

    sent: int = 0
    seen: int = 0
    lost: int = 0
    duplicated: int = 0
    unexpected: int = 0
    pending: int = 0
    strange: int = 0


def judge(store: Store, facts: SparkFacts) -> Verdict:
    """Judge tables `sent` and `lines`: a multiset difference of lines, and the order of those that occur once."""
    counts = _count(store, facts)
    disordered = _disorder(store, facts)
    # Something that is not a file cannot be read: it counts as one line that was never sent.
    special = len(facts.output.special)
    outcome, reason = _outcome(facts, counts, special, disordered)
    return Verdict(
        pipeline="spark",
        outcome=outcome,
        reason=reason,
        expected=counts.sent,
        observed=counts.seen + counts.strange + special,
        lost=counts.lost,
        duplicated=counts.duplicated,
        unexpected=counts.unexpected + special,
        disordered=disordered,
        pending=counts.pending,
        notes=(*facts.places.notes, *facts.notes, *facts.output.notes, *_leftovers(store, facts)),
        records={
            "source": counts.sent,
            "in_output": counts.sent - counts.lost - counts.pending,
            "pending": counts.pending,
            "lost": counts.lost,
        },
    )


def _count(store: Store, facts: SparkFacts) -> _Counts:
    """Compare what was sent with what is there, bucket by bucket of digests; fills `odd` and `placed`."""
    committed = facts.commit.ends if facts.commit else {}
    ends = [_NEVER if facts.caught_up else committed.get(partition, 0) for partition in facts.source]
    store.create("ends", _ENDS)
    store.append("ends", pa.table([pa.array(facts.source, pa.int32()), pa.array(ends, pa.int64())], schema=_ENDS))
    cut = [(number, file.unread) for number, file in enumerate(facts.output.files) if file.unread is not None]
    store.create("cut", _CUT)
    store.append("cut", pa.table([[row[0] for row in cut], [row[1] for row in cut]], schema=_CUT))
    (rows,) = store.numbers("SELECT (SELECT count(*) FROM sent) + (SELECT count(*) FROM lines)")
    buckets = 1 + rows // _BUCKET_ROWS
    sums = [0] * 7
    for bucket in range(buckets):
        store.execute(_TALLY.format(buckets=buckets, bucket=bucket))
        sums = [total + found for total, found in zip(sums, store.numbers(_SUMS), strict=True)]
        odd = """SELECT digest, sent, seen, spare, lost, duplicated, unexpected, pending FROM tally
                 WHERE lost + duplicated + unexpected + pending > 0"""
        placed = "SELECT kafka_partition, kafka_offset, file, line FROM tally WHERE sent = 1 AND seen = 1"
        for table, kind, query in (("odd", "", odd), ("placed", "TEMP", placed)):
            begin = f"INSERT INTO {table}" if bucket else f"CREATE OR REPLACE {kind} TABLE {table} AS"
            store.execute(f"{begin} {query}")
    store.execute("DROP TABLE tally")
    return _Counts(*sums)


def _disorder(store: Store, facts: SparkFacts) -> int:
    """Find the lines at a wrong place, count them, and drop `placed`."""
    known = [(number, file.order) for number, file in enumerate(facts.output.files) if file.order is not None]
    numbers, batches = [number for number, _ in known], [batch for _, batch in known]
    store.create("file_batch", _BATCHES)
    store.append(
        "file_batch", pa.table([pa.array(numbers, pa.int32()), pa.array(batches, pa.int64())], schema=_BATCHES)
    )
    store.execute(_DISORDER)
    store.execute("DROP TABLE placed")
    (disordered,) = store.numbers("SELECT count(*) FROM disorder")
    return disordered


def _outcome(facts: SparkFacts, counts: _Counts, special: int, disordered: int) -> tuple[Outcome, str]:
    topic = facts.places.topic
    if not counts.sent:
        return Outcome.UNKNOWN, f"topic {topic} is empty: nothing was read; start the generator"
    if counts.lost or counts.duplicated or counts.unexpected or special:
        return Outcome.VIOLATED, f"not every record of {topic} is one line of the output"
    if facts.output.missing:
        return Outcome.VIOLATED, missing_file(*next(iter(facts.output.missing.items())))
    if disordered:
        lines = "1 line is" if disordered == 1 else f"{disordered:,} lines are"
        return Outcome.VIOLATED, f"every record of {topic} is one line of the output, but {lines} at a wrong place"
    return _holds(facts, counts.pending)


def _holds(facts: SparkFacts, pending: int) -> tuple[Outcome, str]:
    topic, commit = facts.places.topic, facts.commit
    if facts.caught_up:
        return Outcome.HOLDS, f"every record of {topic} is one line of the output"
    if commit is None:
        return Outcome.UNKNOWN, f"no batch is committed in {facts.places.checkpoint}, so what is due is not known"
    return (
        Outcome.HOLDS,
        f"judged as it is: every record of {topic} up to the end of batch {commit.batch}, the last committed, is one "
        f"line of the output; {pending:,} pending",
    )


def missing_file(name: str, batch: int) -> str:
    """Return the text for a missing file of the log."""
    return f"file {printable(name)}, which batch {batch} of the sink's log names, is missing: its lines are lost"


def _leftovers(store: Store, facts: SparkFacts) -> list[str]:
    leftovers = [file for file in facts.output.files if file.leftover and file.size]
    if not leftovers:
        return []
    (lines,) = store.numbers(
        """SELECT count(*) FROM lines ANTI JOIN (SELECT digest FROM odd WHERE unexpected > 0) USING (digest)
           WHERE leftover"""
    )
    return [
        f"{plural(len(leftovers), 'file')} with {plural(lines, 'line')} that the sink's log does not name, left over "
        f"from an interrupted batch: readers of the log do not see them, so they do not count "
        f"({printable(leftovers[0].name)})"
    ]
