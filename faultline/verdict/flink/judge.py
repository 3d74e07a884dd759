"""The judge of the windowing job: an independent batch program over its input. No I/O except its tables.

Source = in windows + late + rejected + pending + lost, exactly; docs/verdict.md explains the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from faultline.formats.verdict import CATEGORIES, FAULTS, Outcome, Verdict
from faultline.formats.visit import LATE_REASON
from faultline.verdict.flink.clock import PartitionClock, Rules
from faultline.verdict.flink.decisions import LateCounts, explain_late
from faultline.verdict.flink.findings import Names, all_findings
from faultline.verdict.flink.reader import REASONS
from faultline.verdict.flink.windows import Totals, compare_windows
from faultline.verdict.model import Findings, Judgement, first_findings, plural
from faultline.verdict.store import Store


@dataclass(frozen=True)
class FlinkFacts:
    """Facts that the judge must know besides its tables.

    `shared`: number of clocks that the job has; partitions p and p + shared share one. `fewest_shared`: the fewest that
    it had in a run. `partitions`: for each output topic, its numbers of partitions when its first and when its last
    record was written. `positions`: up to where the job has committed its decisions, per partition of the source; with
    `caught_up` that is the end.
    `outputs_at_rest`: no transaction is open on the outputs. `as_is`: pending records do not make the outcome unknown.
    """

    names: Names
    rules: Rules
    shared: int
    fewest_shared: int
    clocks: list[PartitionClock]
    partitions: dict[str, tuple[int, int]]
    positions: dict[int, int]
    caught_up: bool
    outputs_at_rest: bool = True
    as_is: bool = False
    notes: tuple[str, ...] = ()


# Each routed record: what is wrong with it (null: nothing), and its ordinal among the copies of its source record.
_ROUTED = """
CREATE OR REPLACE TABLE {topic}_fate AS
SELECT routed.*, visits.visit, visits.visit_id, visits.event_time, visits.window_end,
    CASE WHEN routed.source_partition IS NULL THEN 'headers'
         WHEN visits.digest IS NULL THEN 'no source'
         WHEN {wrong_kind} THEN 'wrong kind'
         WHEN visits.digest <> routed.digest THEN 'other bytes'
         WHEN visits.timestamp <> routed.timestamp THEN 'other timestamp'
         WHEN {wrong_reason} THEN 'other reason'
         WHEN coalesce({misplaced}, false) THEN 'other partition'
    END AS fault
FROM {topic} AS routed
LEFT JOIN visits ON visits.kafka_partition = routed.source_partition AND visits.kafka_offset = routed.source_offset
"""

# First right copies that come after one of a later record with the same key from the same partition.
_ROUTED_DISORDERED = """
CREATE OR REPLACE TABLE {topic}_disordered AS
SELECT kafka_partition, kafka_offset FROM (
    SELECT *, max(source_offset) OVER (
        PARTITION BY kafka_partition, source_partition, key_hash ORDER BY kafka_offset
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS latest
    FROM {topic}_fate WHERE fault IS NULL AND nth = 1 AND key_hash IS NOT NULL
) WHERE source_offset < latest
"""

# Records that belong on a topic and have no faultless copy there; pending while the job has not decided them.
_MISSING = """
CREATE OR REPLACE TABLE missing_{topic} AS
SELECT kafka_partition, kafka_offset, kafka_offset >= position AS pending FROM ({wanted}) AS wanted
ANTI JOIN (SELECT source_partition, source_offset FROM {topic}_fate WHERE fault IS NULL) AS found
    ON found.source_partition = wanted.kafka_partition AND found.source_offset = wanted.kafka_offset
JOIN decided USING (kafka_partition)
"""

# Visits after the job's position that it may call late.
_UNDECIDED = """
CREATE OR REPLACE TABLE undecided AS
SELECT kafka_partition, kafka_offset FROM visits JOIN decided USING (kafka_partition)
WHERE window_end IS NOT NULL AND kafka_offset >= position AND kafka_offset >= free_from
UNION
SELECT kafka_partition, kafka_offset FROM passed JOIN decided USING (kafka_partition) WHERE kafka_offset >= position
"""

_WINDOW_FATE = """
CREATE OR REPLACE TABLE window_fate AS
SELECT *, exact = 0 AND (wrong > 0 OR due) AS lost, exact = 0 AND wrong = 0 AND NOT due AS pending,
       greatest(exact - 1, 0) AS duplicated
FROM (SELECT *, window_end <= $reached AND NOT undone AS due FROM suspect)
"""


def judge(store: Store, facts: FlinkFacts) -> Judgement:
    """Judge tables `visits`, `passed`, `windows`, `late` and `rejected`."""
    late_bit = REASONS[LATE_REASON]
    for topic, name, wrong_kind, wrong_reason in (
        ("late", facts.names.late, "visits.visit IS NULL", f"reason <> {late_bit}"),
        ("rejected", facts.names.rejected, "visits.visit IS NOT NULL", "routed.reason & visits.reasons = 0"),
    ):
        store.execute(
            _ROUTED.format(
                topic=topic, wrong_kind=wrong_kind, wrong_reason=wrong_reason,
                misplaced=_misplaced(facts.partitions[name], "routed."),
            )
        )  # fmt: skip
    positions = _positions(store, facts)
    late = explain_late(store, facts.clocks, facts.fewest_shared, positions)
    _number_copies(store)
    for topic in ("late", "rejected"):
        store.execute(_ROUTED_DISORDERED.format(topic=topic))
    store.execute(_MISSING.format(topic="late", wanted="SELECT * FROM set_aside"))
    unparsable = "SELECT kafka_partition, kafka_offset FROM visits WHERE visit IS NULL"
    store.execute(_MISSING.format(topic="rejected", wanted=unparsable))
    store.execute(_UNDECIDED)
    passed = max((clock.ends[-1] for clock in facts.clocks if clock.ends), default=0)
    totals = compare_windows(store, _misplaced(facts.partitions[facts.names.windows]), passed)
    store.execute(_WINDOW_FATE, reached=_reached(facts, positions, totals))
    find = partial(all_findings, store, facts.names, facts.rules.window_ms)
    return Judgement(_verdict(store, facts, totals, late, find), find)


def _misplaced(counts: tuple[int, int], table: str = "") -> str:
    """Return the condition of a record that is in none of its key's partitions; null without a key."""
    allowed = " OR ".join(
        f"{table}key_hash % {count} = {table}kafka_partition" for count in range(counts[0], counts[1] + 1)
    )
    return f"NOT ({allowed})"


def _positions(store: Store, facts: FlinkFacts) -> dict[int, int]:
    """Return up to where the job has committed: a committed record that was set aside proves all earlier ones."""
    positions = dict(facts.positions)
    if facts.caught_up or not facts.outputs_at_rest:
        return positions
    for topic in ("late", "rejected"):
        for partition, position in store.rows(
            f"""SELECT source_partition, max(source_offset) + 1 FROM {topic}_fate
                WHERE fault IS NULL GROUP BY source_partition"""
        ):
            number = int(str(partition))
            positions[number] = max(positions.get(number, 0), int(str(position)))
    return positions


def _number_copies(store: Store) -> None:
    for topic in ("late", "rejected"):
        store.execute(
            f"""CREATE OR REPLACE TABLE {topic}_fate AS
                SELECT *, row_number() OVER (
                    PARTITION BY source_partition, source_offset, fault ORDER BY kafka_partition, kafka_offset
                ) AS nth FROM {topic}_fate"""
        )


def _reached(facts: FlinkFacts, positions: dict[int, int], totals: Totals) -> int:
    """Return the newest due window end: the job's clock was there, so that window and all earlier ones are written.

    The source proves it by the clocks at the job's position (without the last visit, whose watermark may not have been
    emitted). The outputs prove it by a right window: windows fire in the order of their ends. A late visit proves
    nothing: its own partition may be far ahead of the slowest.
    """
    proofs = [0]
    by_clock: dict[int, int] = {}
    for clock in facts.clocks:
        passed = clock.passed_at(positions.get(clock.partition, 0) - 1) or 0
        number = clock.partition % facts.shared
        by_clock[number] = max(by_clock.get(number, 0), passed)
    proofs.append(min(by_clock.values(), default=0))
    if facts.outputs_at_rest:
        proofs.append(totals.newest)
    return max(proofs)


def _verdict(store: Store, facts: FlinkFacts, totals: Totals, late_counts: LateCounts, find: Findings) -> Verdict:
    names = facts.names
    source, unparsable, aside = store.numbers(
        "SELECT count(*), count(*) FILTER (visit IS NULL), (SELECT count(*) FROM set_aside) FROM visits"
    )
    lost, duplicated, pending, lost_visits, pending_visits, closing, closing_visits = store.numbers(
        """SELECT count(*) FILTER (lost), sum(duplicated), count(*) FILTER (pending AND NOT closing),
                  sum(visit_count) FILTER (lost), sum(visit_count) FILTER (pending AND NOT closing),
                  count(*) FILTER (pending AND closing), sum(visit_count) FILTER (pending AND closing)
           FROM window_fate"""
    )
    on_windows, malformed = store.numbers("SELECT count(*), count(*) FILTER (fault IS NOT NULL) FROM windows")
    (wrong,) = store.numbers("SELECT count(*) FROM wrong")
    (disordered,) = store.numbers(
        """SELECT (SELECT count(*) FROM disordered) + (SELECT count(*) FROM late_disordered)
                + (SELECT count(*) FROM rejected_disordered)"""
    )
    on_late, late_wrong, late_copies, late = _routed(store, "late")
    on_rejected, rejected_wrong, rejected_copies, rejected = _routed(store, "rejected")
    late_pending, late_lost = _missing(store, "late")
    rejected_pending, rejected_lost = _missing(store, "rejected")
    lost += late_lost + rejected_lost
    pending += late_pending + rejected_pending
    duplicated += late_copies + rejected_copies
    unexpected = wrong + malformed + late_wrong + rejected_wrong
    # Windows of closing visits are counted apart: those that are written, and those that wait for the next generator.
    closed = totals.closing
    closing += closed
    windows = totals.windows - closing
    observed = on_windows + on_late + on_rejected - closed
    counts = {
        "lost": lost, "duplicated": duplicated, "unexpected": unexpected, "disordered": disordered, "pending": pending
    }  # fmt: skip
    faults = sum(counts[category] for category in FAULTS)
    outcome, reason = _outcome(facts, source, observed + closed, faults, pending)
    return Verdict(
        pipeline="flink",
        outcome=outcome,
        reason=reason,
        expected=windows + aside + unparsable,
        observed=observed,
        lost=lost,
        duplicated=duplicated,
        unexpected=unexpected,
        disordered=disordered,
        pending=pending,
        late=late,
        rejected=rejected,
        closing=closing,
        examples=first_findings(find, [category for category in CATEGORIES if counts[category]]),
        notes=(
            *facts.notes,
            f"expected: {plural(windows, 'window')}, {plural(aside, 'late visit')}, "
            f"{plural(unparsable, 'unparsable record')}; {plural(closing, 'window')} of closing visits counted apart",
            f"observed: {on_windows - closed:,} on {names.windows}, {on_late:,} on {names.late}, "
            f"{on_rejected:,} on {names.rejected}",
            *_late_note(late_counts),
        ),
        records={
            "source": source,
            "in_windows": totals.visits - totals.closing_visits,
            "late": aside - late_lost - late_pending,
            "rejected": unparsable - rejected_lost - rejected_pending,
            "closing": totals.closing_visits + closing_visits,
            "pending": pending_visits + late_pending + rejected_pending,
            "lost": lost_visits + late_lost + rejected_lost,
        },
    )


def _late_note(counts: LateCounts) -> tuple[str, ...]:
    if not counts.own + counts.others:
        return ()
    return (
        f"late by the clock of their own partition: {counts.own:,}; by another one's, while their own was idle or "
        f"shared its clock: {counts.others:,}",
    )


def _routed(store: Store, topic: str) -> tuple[int, ...]:
    """Count the records of a topic, the faulty ones, further copies, and first faultless copies."""
    return store.numbers(
        f"""SELECT count(*), count(*) FILTER (fault IS NOT NULL), count(*) FILTER (fault IS NULL AND nth > 1),
                   count(*) FILTER (fault IS NULL AND nth = 1) FROM {topic}_fate"""
    )


def _missing(store: Store, topic: str) -> tuple[int, ...]:
    return store.numbers(f"SELECT count(*) FILTER (pending), count(*) FILTER (NOT pending) FROM missing_{topic}")


def _outcome(facts: FlinkFacts, source: int, observed: int, faults: int, pending: int) -> tuple[Outcome, str]:
    names = facts.names
    if not source:
        return Outcome.UNKNOWN, f"topic {names.visits} is empty: nothing was read; start the generator"
    if faults:
        return Outcome.VIOLATED, f"the output of the job does not follow from the records of {names.visits}"
    if not observed:
        return Outcome.UNKNOWN, f"no window is due and {names.windows} is empty: nothing was read; send more visits"
    if not pending:
        return Outcome.HOLDS, f"every record of {names.visits} is in one window, late, or rejected"
    waiting = plural(pending, "record")
    if facts.as_is:
        return Outcome.HOLDS, f"judged as it is: the records on {names.windows} are right so far, {waiting} pending"
    return (
        Outcome.UNKNOWN,
        f"{waiting} pending in windows that are still open; close them (scripts/settle.sh), or judge with --as-is",
    )
