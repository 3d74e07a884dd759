"""Every fault of the source as a finding: its visit or record, its place, and the content of that place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from faultline.formats.verdict import FAULTS, Finding
from faultline.formats.visit import iso_time, parse_event_time
from faultline.verdict.checker import Stopwatch
from faultline.verdict.escape import name_of, printable, shown
from faultline.verdict.loading import TopicReader
from faultline.verdict.model import EXAMPLES_PER_CATEGORY, Judgement
from faultline.verdict.records import Record
from faultline.verdict.source.judge import SourceFacts, judge
from faultline.verdict.source.reader import NOT_READ_AGAIN, Position, with_records
from faultline.verdict.store import Store

_LOST = """
SELECT lost.kafka_partition, lost.kafka_offset, lost.file, lost.number, lost.timestamp, key, end_offset,
       here.timestamp, here.digest = lost.digest
FROM lost JOIN ledger_sent USING (file, number)
LEFT JOIN span ON span.kafka_partition = lost.kafka_partition
LEFT JOIN source_record here
    ON here.kafka_partition = lost.kafka_partition AND here.kafka_offset = lost.kafka_offset
ORDER BY lost.kafka_partition, lost.kafka_offset, lost.file, lost.number
"""

_DUPLICATED = """
SELECT extra.kafka_partition, kafka_offset, file, number, key FROM extra JOIN ledger_sent USING (file, number)
ORDER BY extra.kafka_partition, kafka_offset
"""

_UNEXPECTED = """
SELECT kafka_partition, kafka_offset FROM extra WHERE number IS NULL ORDER BY kafka_partition, kafka_offset
"""

_LAST_MOMENT = parse_event_time("9998-12-31T23:59:59.999Z") or 0


def judgement(store: Store, reader: TopicReader, facts: SourceFacts, clock: Stopwatch) -> Judgement:
    """Judge tables that are filled; `reader` fetches the records that findings are about."""
    with clock.measure("judging"):
        verdict = judge(store, facts)
        findings = SourceFindings(store, facts, reader)
        examples = [finding for category in FAULTS for finding in findings.of(category, EXAMPLES_PER_CATEGORY)]
    return Judgement(replace(verdict, examples=tuple(examples), seconds=dict(clock.seconds)), findings.of)


class _Lost(NamedTuple):
    """A row of the query for lost visits; the last three columns describe the place where the visit should be."""

    partition: int
    offset: int
    file: int
    number: int
    timestamp: int
    key: str
    end: int | None
    other_timestamp: int | None
    same_content: bool | None


@dataclass(frozen=True)
class SourceFindings:
    """The findings behind a verdict, from the tables that the judge leaves."""

    store: Store
    facts: SourceFacts
    reader: TopicReader

    def of(self, category: str, limit: int | None = None) -> Iterator[Finding]:
        """Yield the findings of a category by place: all, or the first ones."""
        end = "" if limit is None else f" LIMIT {limit}"
        if category == "lost":
            return (self._lost(row) for row in self.store.stream(_LOST + end))
        if category == "duplicated":
            return self._extra(category, _DUPLICATED + end)
        if category == "unexpected":
            return self._extra(category, _UNEXPECTED + end)
        return iter(())

    def _lost(self, row: tuple[Any, ...]) -> Finding:
        lost = _Lost(*row)
        content = unquote_to_bytes(lost.key)
        return Finding(
            "lost",
            f"visit {shown(content)} ({self._line(lost.file, lost.number)}) was acknowledged at {self.facts.topic} "
            f"partition {lost.partition} offset {lost.offset}: {_instead(lost)}",
            {
                "visit_id": name_of(content.decode("utf-8", "replace")),
                "topic": self.facts.topic,
                "partition": lost.partition,
                "offset": lost.offset,
                "timestamp": _moment(lost.timestamp),
                "number": lost.number,
                "file": self.facts.ledgers.files[lost.file].name,
            },
        )

    def _extra(self, category: str, query: str) -> Iterator[Finding]:
        found = 0
        try:
            for place, record in with_records(self.reader, self.facts.topic, self._places(query)):
                yield self._record(category, place, record)
                found += 1
        except NOT_READ_AGAIN:
            for place in islice(self._places(query), found, None):
                yield self._record(category, place, None)

    def _places(self, query: str) -> Iterator[Position]:
        return (Position(int(str(row[0])), int(str(row[1])), row[2:]) for row in self.store.stream(query))

    def _record(self, category: str, place: Position, record: Record | None) -> Finding:
        topic, partition, offset = self.facts.topic, place.partition, place.offset
        if category == "duplicated":
            file, number, key = place.known
            said = f"repeats visit {shown(unquote_to_bytes(str(key)))} ({self._line(file, number)})"
            line: dict[str, object] = {"number": number, "file": self.facts.ledgers.files[int(str(file))].name}
        else:
            said, line = "was never sent by a generator that kept a ledger", {}
        content = "it cannot be read again"
        names: dict[str, object] = {"topic": topic, "partition": partition, "offset": offset}
        if record is not None:
            content = f"key {shown(record.key)}, value {shown(record.value)}"
            visit_id = None if record.key is None else name_of(record.key.decode("utf-8", "replace"))
            names = {"visit_id": visit_id, **names, "timestamp": _moment(record.timestamp)}
        return Finding(category, f"{topic} partition {partition} offset {offset} {said}: {content}", {**names, **line})

    def _line(self, file: Any, number: Any) -> str:
        return f"number {number} of {printable(self.facts.ledgers.files[file].name)}"


def _instead(lost: _Lost) -> str:
    """Return what is where a visit should be."""
    if lost.end is None:
        return "the topic has no such partition"
    if lost.offset >= lost.end:
        return f"the partition ends at offset {lost.end}"
    if lost.other_timestamp is None:
        return "no record is there"
    if not lost.same_content:
        return "another record is there"
    if lost.other_timestamp != lost.timestamp:
        return f"the record there has the timestamp {_moment(lost.other_timestamp)}"
    return "the record there is another visit's, which was acknowledged there later"


def _moment(timestamp: int) -> str | int | None:
    """Format a record's timestamp; None when its producer set none, a number when no date can express it."""
    if timestamp < 0:
        return None
    return iso_time(timestamp) if timestamp <= _LAST_MOMENT else timestamp
