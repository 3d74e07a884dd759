"""The judge of the synchronizer: each record of the topic is one line of the output. No I/O but its tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb

from contract.visit import iso_time, parse_visit
from verdict.model import CATEGORIES, EXAMPLES_PER_CATEGORY, Example, Outcome, Verdict, plural
from verdict.spark_checkpoint import Commit
from verdict.store import numbers, rows

_SHOWN_BYTES = 120


@dataclass(frozen=True)
class SparkFacts:
    """What the judge must know beside tables `sent` and `lines`.

    `commit` is the newest committed batch (None: no batch yet); `files` the names that column `file` counts from 0;
    `missing` maps files that the sink's log names but that are gone to their batch. `record` and `line_text` fetch
    the text of a record (partition, offset) and of a line (file, position) for examples.
    """

    topic: str
    commit: Commit | None
    files: list[str]
    record: Callable[[int, int], bytes | None]
    line_text: Callable[[int, int], bytes]
    missing: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Place:
    """A line of the output: its file's number, its number from 1, the bytes before it."""

    file: int
    line: int
    position: int
    leftover: bool


# One row a distinct line: how often it was sent by committed batches (due) and beyond them (later), how often
# it is there (seen), and how often in leftovers only. Lines that are the same stand for each other.
_TALLY = """
CREATE OR REPLACE TEMP TABLE tally AS
SELECT digest, sum(due)::BIGINT AS due, sum(later)::BIGINT AS later,
       sum(seen)::BIGINT AS seen, sum(leftover)::BIGINT AS leftover,
       min(kafka_offset) AS first_sent, min(place) AS first_seen
FROM (
    SELECT digest, (kafka_offset < ends.end_offset)::INT AS due,
           (kafka_offset >= ends.end_offset)::INT AS later, 0 AS seen, 0 AS leftover,
           kafka_offset, NULL AS place
    FROM sent JOIN ends USING (kafka_partition)
    UNION ALL
    SELECT digest, 0, 0, (NOT leftover)::INT, leftover::INT, NULL, file::BIGINT * 1000000000000 + line FROM lines
)
GROUP BY digest
"""

_FATE = """
CREATE OR REPLACE TEMP TABLE fate AS
SELECT *, greatest(due - seen, 0) AS lost,
       CASE WHEN due + later > 0 THEN greatest(seen - due - later, 0) ELSE 0 END AS duplicated,
       CASE WHEN due + later = 0 THEN seen + leftover ELSE 0 END AS unexpected,
       later - least(greatest(seen - due, 0), later) AS pending
FROM tally
"""


def judge(connection: duckdb.DuckDBPyConnection, facts: SparkFacts) -> Verdict:
    """Judge tables `sent` and `lines`: a multiset difference of lines."""
    ends = facts.commit.ends if facts.commit else {}
    connection.execute("CREATE OR REPLACE TEMP TABLE ends (kafka_partition INTEGER, end_offset BIGINT)")
    for (partition,) in rows(connection, "SELECT DISTINCT kafka_partition FROM sent"):
        connection.execute("INSERT INTO ends VALUES (?, ?)", [partition, ends.get(int(str(partition)), 0)])
    connection.execute(_TALLY)
    connection.execute(_FATE)
    expected, observed, lost, duplicated, unexpected, pending, strange = numbers(
        connection,
        """SELECT sum(due + later), sum(seen), sum(lost), sum(duplicated), sum(unexpected), sum(pending),
                  sum(leftover) FILTER (due + later = 0) FROM fate""",
    )
    outcome, reason = _outcome(facts, expected, observed, lost + duplicated + unexpected, pending)
    return Verdict(
        pipeline="spark",
        outcome=outcome,
        reason=reason,
        expected=expected,
        observed=observed + strange,
        lost=lost,
        duplicated=duplicated,
        unexpected=unexpected,
        pending=pending,
        examples=(*_missing_files(facts), *_examples(connection, facts)),
        notes=(*facts.notes, *_leftovers(connection, facts)),
        records={"source": expected, "in_output": expected - lost - pending, "pending": pending, "lost": lost},
    )


def _outcome(facts: SparkFacts, expected: int, observed: int, wrong: int, pending: int) -> tuple[Outcome, str]:
    if not expected:
        return Outcome.UNKNOWN, f"topic {facts.topic} is empty: nothing was read; start the generator"
    if wrong or facts.missing:
        return Outcome.VIOLATED, f"not every record of {facts.topic} is one line of the output"
    if not observed:
        return (
            Outcome.UNKNOWN,
            "no batch is committed and the output is empty: nothing was read; start the synchronizer",
        )
    if pending and not facts.commit:
        return Outcome.UNKNOWN, "the checkpoint has no committed batch, so what is due cannot be told; see --checkpoint"
    if pending:
        return Outcome.HOLDS, f"every committed record of {facts.topic} is one line of the output; the rest is pending"
    return Outcome.HOLDS, f"every record of {facts.topic} is one line of the output"


def _missing_files(facts: SparkFacts) -> list[Example]:
    return [
        Example(
            "lost",
            f"file {name}, which batch {batch} of the sink's log names, is missing: its lines are lost",
            {"file": name, "batch": batch},
        )
        for name, batch in list(facts.missing.items())[:EXAMPLES_PER_CATEGORY]
    ]


def _examples(connection: duckdb.DuckDBPyConnection, facts: SparkFacts) -> list[Example]:
    examples = []
    for category in CATEGORIES:
        # By place, so that the same data give the same examples.
        first = "first_seen" if category == "unexpected" else "first_sent"
        for digest, sent, seen in rows(
            connection,
            f"""SELECT digest, due + later, seen FROM fate WHERE {category} > 0
                ORDER BY {first}, digest LIMIT {EXAMPLES_PER_CATEGORY}""",
        ):
            found = _places(connection, digest)
            if category == "unexpected":
                examples.append(_unexpected(facts, found[0]))
            else:
                place = _sent_place(connection, digest, newest=category == "pending")
                times = (int(str(sent)), int(str(seen)))
                examples.append(_sent(facts, category, place, times, found))
    return examples


def _places(connection: duckdb.DuckDBPyConnection, digest: object) -> list[_Place]:
    """List the first few places of a line, those that count before the leftovers."""
    return [
        _Place(int(str(file)), int(str(line)), int(str(position)), bool(leftover))
        for file, line, position, leftover in rows(
            connection,
            """SELECT file, line, position, leftover FROM lines WHERE digest = ?
               ORDER BY leftover, file, line LIMIT 3""",
            digest,
        )
    ]


def _unexpected(facts: SparkFacts, place: _Place) -> Example:
    text = facts.line_text(place.file, place.position)
    shown = text[:_SHOWN_BYTES].decode("utf-8", "replace") + ("…" if len(text) > _SHOWN_BYTES else "")
    file = facts.files[place.file]
    names: dict[str, object] = {"file": file, "line": place.line, **_visit_names(text)}
    return Example("unexpected", f"{file} line {place.line} was never sent: {shown}", names)


def _sent_place(connection: duckdb.DuckDBPyConnection, digest: object, *, newest: bool) -> tuple[int, int]:
    """Find a record that must become a line: partition and offset."""
    order = "DESC" if newest else "ASC"
    partition, offset = numbers(
        connection,
        f"""SELECT kafka_partition, kafka_offset FROM sent WHERE digest = ?
            ORDER BY kafka_offset {order}, kafka_partition LIMIT 1""",
        digest,
    )
    return partition, offset


def _sent(
    facts: SparkFacts, category: str, place: tuple[int, int], times: tuple[int, int], found: list[_Place]
) -> Example:
    """Build an example of a record that was sent; `times`: how often it was sent and how often it is there."""
    partition, offset = place
    text = facts.record(partition, offset) or b""
    names = {**_visit_names(text), "topic": facts.topic, "partition": partition, "offset": offset}
    visit = f"visit {names['visit_id']} of {names['event_time']}" if "visit_id" in names else "an unparsable record"
    subject = f"{visit} ({facts.topic} partition {partition} offset {offset})"
    if category == "pending":
        batch = f"beyond batch {facts.commit.batch}, the last committed" if facts.commit else "in no committed batch"
        return Example(category, f"{subject} is {batch}", names)
    sent, seen = times
    counted = [place for place in found if not place.leftover]
    if counted:
        names |= {"file": facts.files[counted[0].file], "line": counted[0].line}
        where = ", ".join(f"{facts.files[place.file]} line {place.line}" for place in counted)
        return Example(category, f"{subject} was sent {_times(sent)} and is there {_times(seen)}: {where}", names)
    leftover = f", only in leftover {facts.files[found[0].file]} line {found[0].line}" if found else ""
    return Example(category, f"{subject} is on no line of the output{leftover}", names)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _visit_names(text: bytes) -> dict[str, object]:
    visit = parse_visit(text)
    if visit is None:
        return {}
    visit_id = visit.visit_id.encode("utf-8", "replace").decode()
    return {"visit_id": visit_id, "event_time": iso_time(visit.event_time)}


def _leftovers(connection: duckdb.DuckDBPyConnection, facts: SparkFacts) -> list[str]:
    found = rows(
        connection,
        """SELECT lines.file, count(*) FROM lines JOIN fate USING (digest)
           WHERE lines.leftover AND fate.due + fate.later > 0 GROUP BY ALL ORDER BY ALL""",
    )
    if not found:
        return []
    total = plural(sum(int(str(count)) for _, count in found), "line")
    first = facts.files[int(str(found[0][0]))]
    return [
        f"{total} in {plural(len(found), 'file')} that the sink's log does not name are leftovers of an interrupted "
        f"batch: readers of the log do not see them, so they do not count ({first})"
    ]
