"""The judge of the windowing job: an independent batch program over its input. No I/O but its tables.

Source = in windows + late + rejected + pending, to the record; docs/verdict.md has the rules in prose.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from verdict.flink_examples import Names, examples
from verdict.model import Outcome, Verdict, plural
from verdict.store import numbers


@dataclass(frozen=True)
class FlinkFacts:
    """What the judge must know beside its tables: topics, window length and out-of-orderness bound (milliseconds)."""

    names: Names
    window_ms: int
    bound_ms: int


# What no interleaving of the partitions can have made late is not late: the highest watermark that a record can
# have met comes from the records before it in its own partition and from every record of the others.
_CEILINGS = """
CREATE OR REPLACE TEMP TABLE ceilings AS
WITH tops AS (SELECT kafka_partition, max(event_time) AS top FROM visits GROUP BY kafka_partition),
others AS (
    SELECT mine.kafka_partition, max(other.top) AS top
    FROM tops AS mine LEFT JOIN tops AS other ON other.kafka_partition <> mine.kafka_partition GROUP BY ALL
),
before AS (
    SELECT kafka_partition, kafka_offset, max(event_time) OVER (
        PARTITION BY kafka_partition ORDER BY kafka_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS top
    FROM visits WHERE EXISTS (FROM late)
)
SELECT before.kafka_partition, before.kafka_offset,
       greatest(before.top, others.top) - $bound - 1 AS ceiling  -- greatest() passes over nulls
FROM before JOIN others USING (kafka_partition)
"""

# Each routed record: what is wrong with it (null: nothing), and the how manieth it is for its source record.
_ROUTED = """
CREATE OR REPLACE TEMP TABLE {topic}_fate AS
SELECT *, row_number() OVER (
    PARTITION BY source_partition, source_offset, fault ORDER BY kafka_partition, kafka_offset
) AS nth
FROM (
    SELECT routed.*, visits.visit_id, visits.event_time,
        CASE WHEN routed.source_partition IS NULL THEN 'headers'
             WHEN visits.digest IS NULL THEN 'no source'
             WHEN {wrong_kind} THEN 'wrong kind'
             WHEN visits.digest <> routed.digest THEN 'other bytes'
             {plausible}
        END AS fault
    FROM {topic} AS routed
    LEFT JOIN visits ON visits.kafka_partition = routed.source_partition
                    AND visits.kafka_offset = routed.source_offset
    {ceilings}
)
"""

_LATE = _ROUTED.format(
    topic="late",
    wrong_kind="visits.visit_id IS NULL",
    plausible="WHEN ceiling IS NULL OR visits.window_start + $window - 1 > ceiling THEN 'not late'",
    ceilings="""LEFT JOIN ceilings ON ceilings.kafka_partition = routed.source_partition
                AND ceilings.kafka_offset = routed.source_offset""",
)
_REJECTED = _ROUTED.format(topic="rejected", wrong_kind="visits.visit_id IS NOT NULL", plausible="", ceilings="")

# A visit that is on the late topic is in no window, whatever else is wrong with its copy there.
_EXPECTED = """
CREATE OR REPLACE TEMP TABLE expected AS
SELECT visit_id, window_start, count(*) AS visit_count,
       min(event_time) AS first_event_time, max(event_time) AS last_event_time
FROM visits
ANTI JOIN (SELECT source_partition, source_offset FROM late_fate) AS gone
    ON gone.source_partition = visits.kafka_partition AND gone.source_offset = visits.kafka_offset
WHERE visit_id IS NOT NULL
GROUP BY visit_id, window_start
"""

_SEEN = """
CREATE OR REPLACE TEMP TABLE seen AS
SELECT windows.*, expected.visit_id IS NULL AS alien,
       coalesce(windows.visit_count = expected.visit_count
                AND windows.first_event_time = expected.first_event_time
                AND windows.last_event_time = expected.last_event_time, false) AS exact
FROM windows LEFT JOIN expected USING (visit_id, window_start)
"""

_WATERMARK = """
SELECT CASE WHEN count(*) = count(top) THEN min(top) - $bound - 1 END
FROM (
    SELECT kafka_partition, max(event_time) FILTER (kafka_offset < last_offset) AS top
    FROM visits JOIN (SELECT kafka_partition, max(kafka_offset) AS last_offset FROM visits GROUP BY ALL)
        USING (kafka_partition)
    GROUP BY kafka_partition
)
"""

_FATE = """
CREATE OR REPLACE TEMP TABLE window_fate AS
SELECT *, exact = 0 AND (wrong > 0 OR due) AS lost, exact = 0 AND wrong = 0 AND NOT due AS pending,
       greatest(exact - 1, 0) AS duplicated
FROM (
    SELECT expected.*, coalesce(exact, 0) AS exact, coalesce(wrong, 0) AS wrong,
           coalesce(window_start + $window - 1 <= $reached, false) AS due
    FROM expected LEFT JOIN (
        SELECT visit_id, window_start, count(*) FILTER (exact) AS exact, count(*) FILTER (NOT exact) AS wrong
        FROM seen WHERE NOT alien GROUP BY visit_id, window_start
    ) USING (visit_id, window_start)
)
"""

# Unparsable records of the source that have no faultless copy among the rejected.
_UNREJECTED = """
CREATE OR REPLACE TEMP TABLE unrejected AS
SELECT kafka_partition, kafka_offset FROM visits
ANTI JOIN (SELECT source_partition, source_offset FROM rejected_fate WHERE fault IS NULL) AS found
    ON found.source_partition = visits.kafka_partition AND found.source_offset = visits.kafka_offset
WHERE visit_id IS NULL
"""


def judge(connection: duckdb.DuckDBPyConnection, facts: FlinkFacts) -> Verdict:
    """Judge tables `visits`, `windows`, `malformed`, `late` and `rejected`."""
    connection.execute(_CEILINGS, {"bound": facts.bound_ms})
    connection.execute(_LATE, {"window": facts.window_ms})
    connection.execute(_REJECTED)
    connection.execute(_EXPECTED)
    connection.execute(_SEEN)
    connection.execute(_FATE, {"window": facts.window_ms, "reached": _reached(connection, facts)})
    connection.execute(_UNREJECTED)
    return _verdict(connection, facts)


def _reached(connection: duckdb.DuckDBPyConnection, facts: FlinkFacts) -> int | None:
    """Find the event time up to which windows are due: the job's watermark was at least there.

    Either the source alone proves it (the slowest partition, without its last record, whose watermark may not have
    been emitted), or the output does: a later window is there, so the earlier ones fired with or before it.
    """
    by_source = connection.execute(_WATERMARK, {"bound": facts.bound_ms}).fetchone()
    by_output = connection.execute(
        "SELECT max(window_start) + $window - 1 FROM seen WHERE exact", {"window": facts.window_ms}
    ).fetchone()
    proofs = [int(row[0]) for row in (by_source, by_output) if row and row[0] is not None]
    return max(proofs, default=None)


def _verdict(connection: duckdb.DuckDBPyConnection, facts: FlinkFacts) -> Verdict:
    source, unparsable = numbers(connection, "SELECT count(*), count(*) FILTER (visit_id IS NULL) FROM visits")
    windows, lost, duplicated, pending, lost_visits, pending_visits, in_windows = numbers(
        connection,
        """SELECT count(*), count(*) FILTER (lost), sum(duplicated), count(*) FILTER (pending),
                  sum(visit_count) FILTER (lost), sum(visit_count) FILTER (pending), sum(visit_count) FILTER (exact > 0)
           FROM window_fate""",
    )
    window_records, alien, wrong = numbers(
        connection, "SELECT count(*), count(*) FILTER (alien), count(*) FILTER (NOT alien AND NOT exact) FROM seen"
    )
    (malformed,) = numbers(connection, "SELECT count(*) FROM malformed")
    (unrejected,) = numbers(connection, "SELECT count(*) FROM unrejected")
    routed = {}
    for topic in ("late", "rejected"):
        routed[topic] = numbers(
            connection,
            f"""SELECT count(*), count(*) FILTER (fault IS NOT NULL), count(*) FILTER (fault IS NULL AND nth > 1),
                       count(*) FILTER (fault IS NULL AND nth = 1) FROM {topic}_fate""",
        )
    (late_visits,) = numbers(
        connection,
        """SELECT count(*) FROM visits SEMI JOIN late_fate ON late_fate.source_partition = visits.kafka_partition
           AND late_fate.source_offset = visits.kafka_offset WHERE visits.visit_id IS NOT NULL""",
    )
    late, rejected = routed["late"], routed["rejected"]
    lost += unrejected
    duplicated += late[2] + rejected[2]
    unexpected = alien + wrong + malformed + late[1] + rejected[1]
    observed = window_records + malformed + late[0] + rejected[0]
    outcome, reason = _outcome(facts, source, observed, lost + duplicated + unexpected, pending)
    return Verdict(
        pipeline="flink",
        outcome=outcome,
        reason=reason,
        expected=windows + late[3] + unparsable,
        observed=observed,
        lost=lost,
        duplicated=duplicated,
        unexpected=unexpected,
        pending=pending,
        late=late[3],
        rejected=rejected[3],
        examples=tuple(examples(connection, facts.names, facts.window_ms)),
        notes=(
            f"expected: {plural(windows, 'window')}, {plural(late[3], 'late visit')}, "
            f"{plural(unparsable, 'unparsable record')}",
            f"observed: {window_records + malformed:,} on {facts.names.windows}, {late[0]:,} on {facts.names.late}, "
            f"{rejected[0]:,} on {facts.names.rejected}",
        ),
        records={
            "source": source,
            "in_windows": in_windows,
            "late": late_visits,
            "rejected": unparsable - unrejected,
            "pending": pending_visits,
            "lost": lost_visits + unrejected,
        },
    )


def _outcome(facts: FlinkFacts, source: int, observed: int, wrong: int, pending: int) -> tuple[Outcome, str]:
    names = facts.names
    if not source:
        return Outcome.UNKNOWN, f"topic {names.visits} is empty: nothing was read; start the generator"
    if wrong:
        return Outcome.VIOLATED, f"what the job wrote is not what follows from the records of {names.visits}"
    if not observed:
        return Outcome.UNKNOWN, f"no window is due and {names.windows} is empty: nothing was read; send more visits"
    rest = "; the rest is pending" if pending else ""
    return Outcome.HOLDS, f"every record of {names.visits} is in one window, late, or rejected{rest}"
