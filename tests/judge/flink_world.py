"""A model of the windowing job for the judge's tests: sources, what a faultless job makes of them, and their verdict.

The model knows the job's contract and nothing of the judge: a clock for each partition that follows its visits, windows
that fire when the slowest one passes their end, late and unparsable records set aside with their headers, every record
under its key.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from faultline.formats.visit import (
    CLOSING_PREFIX,
    LATE_REASON,
    REASON_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    Visit,
    iso_time,
    parse_event_time,
    parse_visit,
    refusal_reasons,
)
from faultline.verdict.flink.clock import Rules
from faultline.verdict.flink.findings import Names
from faultline.verdict.flink.judge import FlinkFacts, judge
from faultline.verdict.flink.reader import VisitRows
from faultline.verdict.flink.tables import load_outputs, load_source
from faultline.verdict.loading import topic_rows
from faultline.verdict.model import Judgement
from faultline.verdict.records import Batch, Record, Span, Spans, batch_of
from generator.sender import partition_of
from tests.judge.shared_store import shared_store

WINDOW_MS = 10_000
BOUND_MS = 5_000
PAUSE_MS = 5_000
RULES = Rules(WINDOW_MS, BOUND_MS, PAUSE_MS)
NAMES = Names("visits", "visit_windows", "visits_late", "visits_rejected")
OUTPUT_PARTITIONS = 2
START = parse_event_time("2026-01-01T00:00:00Z") or 0

Source = dict[int, list[Record]]
"""The records of each partition of `visits`; an offset is an index."""


def visit_value(visit_id: str, event_time: int, page: str = "home") -> bytes:
    """Write a visit as the generator does; `event_time` in milliseconds since the epoch."""
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(event_time), "page": page}).encode()


def add(source: Source, partition: int, key: bytes | None, value: bytes | None, timestamp: int) -> None:
    """Append a record to a partition."""
    records = source[partition]
    records.append(Record(partition, len(records), key, value, timestamp))


def add_visit(source: Source, partition: int, visit_id: str, event_time: int) -> None:
    """Append a visit to a partition."""
    add(source, partition, visit_id.encode(), visit_value(visit_id, event_time), event_time)


@dataclass
class Outputs:
    """Records that the job wrote to its three topics."""

    windows: list[Record] = field(default_factory=list)
    late: list[Record] = field(default_factory=list)
    rejected: list[Record] = field(default_factory=list)


def placed(records: Sequence[Record], partitions: int = OUTPUT_PARTITIONS) -> list[Record]:
    """Give each record the partition of its key and the next offset there, as a producer and the broker do."""
    ends = dict.fromkeys(range(partitions), 0)
    found = []
    for record in records:
        partition = 0 if record.key is None else partition_of(record.key, partitions)
        found.append(record._replace(partition=partition, offset=ends[partition]))
        ends[partition] += 1
    return found


def window_record(visit_id: str, end: int, times: Sequence[int]) -> Record:
    """Build the record of a window; its place comes from `placed`."""
    document = {
        "visit_id": visit_id,
        "window_start": iso_time(end - WINDOW_MS),
        "window_end": iso_time(end),
        "count": len(times),
        "first_event_time": iso_time(min(times)),
        "last_event_time": iso_time(max(times)),
    }
    return Record(0, 0, visit_id.encode(), json.dumps(document).encode(), end - 1)


def routed_record(record: Record, reason: str) -> Record:
    """Build the copy of a record that the job sets aside."""
    headers = (
        (SOURCE_PARTITION_HEADER, str(record.partition).encode()),
        (SOURCE_OFFSET_HEADER, str(record.offset).encode()),
        (REASON_HEADER, reason.encode()),
    )
    return Record(0, 0, record.key, record.value, record.timestamp, headers)


class Job:
    """The windowing job, read by read. A mutant overrides one of its methods."""

    window_ms = WINDOW_MS
    bound_ms = BOUND_MS

    def __init__(self, partitions: Iterable[int]) -> None:
        self.tops: dict[int, int | None] = dict.fromkeys(partitions)
        """The newest event time of each partition."""
        self.passed: dict[int, int] = {}
        """The clocks: the end of the last window that each has passed. Partition p has clock p modulo their number."""
        self.set_clocks(len(self.tops))
        self.closed = 0
        self.open: dict[tuple[str, int], list[int]] = {}
        self.written = Outputs()

    def set_clocks(self, number: int) -> None:
        """Start with this number of clocks; a new one goes on with what the one that was shared has passed."""
        self.passed = {clock: self.passed[clock % len(self.passed)] if self.passed else 0 for clock in range(number)}

    def clock_of(self, partition: int) -> int:
        """Give the clock of a partition."""
        return partition % len(self.passed)

    def read(self, record: Record) -> None:
        """Take one record."""
        visit = parse_visit(record.value)
        if visit is None:
            self.reject(record)
            return
        top = self.tops[record.partition]
        self.tops[record.partition] = visit.event_time if top is None else max(top, visit.event_time)
        self.decide(record, visit, visit.event_time - visit.event_time % self.window_ms + self.window_ms)
        self.pass_to(record.partition, self.time_of(record, visit) - self.bound_ms)
        self.advance()

    def decide(self, record: Record, visit: Visit, end: int) -> None:
        """Put a visit into its window, or set it aside when that window is over."""
        if end <= self.passed_for(record):
            self.set_late(record, visit)
        else:
            self.open.setdefault((visit.visit_id, end), []).append(visit.event_time)

    def passed_for(self, record: Record) -> int:
        """Give the end of the last window that is over for this record: by the clock of its own partition."""
        return self.passed[self.clock_of(record.partition)]

    def time_of(self, record: Record, visit: Visit) -> int:
        """Give the time that a visit moves the clock to, but for the bound."""
        return visit.event_time

    def pass_to(self, partition: int, now: int) -> None:
        """Move the clock of a partition on."""
        clock = self.clock_of(partition)
        self.passed[clock] = max(self.passed[clock], now - now % self.window_ms)

    def clock(self) -> int:
        """Give the end of the last window that every partition has passed."""
        return min(self.passed.values())

    def advance(self) -> None:
        """Write the windows that the slowest clock passes, in the order of their ends."""
        self.closed = max(self.closed, self.clock())
        for visit_id, end in sorted((key for key in self.open if key[1] <= self.closed), key=lambda key: key[1]):
            self.fire(visit_id, end, self.open.pop((visit_id, end)))

    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        """Write a window."""
        self.written.windows.append(window_record(visit_id, end, times))

    def set_late(self, record: Record, visit: Visit) -> None:
        """Write a late visit."""
        self.written.late.append(routed_record(record, LATE_REASON))

    def reject(self, record: Record) -> None:
        """Write an unparsable record."""
        self.written.rejected.append(routed_record(record, refusal_reasons(record.value)[0]))


def any_order(source: Source, chance: random.Random) -> Iterator[Record]:
    """Read the partitions in some order: record by record, or in runs as a consumer fetches them."""
    position = dict.fromkeys(source, 0)
    run = chance.choice([1, 1, 5, 40])
    while left := [partition for partition in source if position[partition] < len(source[partition])]:
        partition = chance.choice(left)
        for _ in range(chance.randint(1, run)):
            if position[partition] < len(source[partition]):
                yield source[partition][position[partition]]
                position[partition] += 1


def run_job(source: Source, chance: random.Random, job: Callable[[Iterable[int]], Job] = Job) -> Outputs:
    """Let a job read a source in some order, and give what it wrote; windows that are still open are not written."""
    running = job(source)
    for record in any_order(source, chance):
        running.read(record)
    written = running.written
    return Outputs(placed(written.windows), placed(written.late), placed(written.rejected))


def random_source(chance: random.Random, partitions: int = 2, records: int = 400) -> Source:
    """Write visits with disorder, late, repeated and unparsable ones; each visit has its partition."""
    source: Source = {partition: [] for partition in range(partitions)}
    clock = START
    for _ in range(records):
        clock += chance.randrange(400)
        disorder = chance.choice([0, 0, 0, chance.randrange(BOUND_MS), chance.randrange(12 * BOUND_MS)])
        visit_id = f"v{chance.randrange(6 * partitions)}"
        partition = int(visit_id[1:]) % partitions
        roll = chance.random()
        if roll < 0.05:
            bad = chance.choice([b"", b"{", b"null", b'{"visit_id":"a"}', b"\xff", None])
            add(source, partition, visit_id.encode(), bad, clock)
        elif roll < 0.08 and source[partition]:
            copy = chance.choice(source[partition])
            add(source, partition, copy.key, copy.value, copy.timestamp)
        else:
            add_visit(source, partition, visit_id, clock - disorder)
    return source


def settle(source: Source) -> Source:
    """Append the closing visits that move every partition past the last window."""
    times = [visit.event_time for records in source.values() for r in records if (visit := parse_visit(r.value))]
    closing = max(times, default=START) // WINDOW_MS * WINDOW_MS + WINDOW_MS + BOUND_MS
    settled = {partition: list(records) for partition, records in source.items()}
    for moment in (closing, closing + 1):
        for partition in settled:
            add_visit(settled, partition, f"{CLOSING_PREFIX}{partition}", moment)
    return settled


class Topics:
    """The four topics in memory, read as a cluster is."""

    def __init__(self, source: Source, outputs: Outputs, markers: int = 0) -> None:
        self._markers = markers
        self._topics: dict[str, dict[int, list[Record]]] = {NAMES.visits: source}
        for name, records in zip(
            (NAMES.windows, NAMES.late, NAMES.rejected), (outputs.windows, outputs.late, outputs.rejected), strict=True
        ):
            partitions = max([OUTPUT_PARTITIONS, *(record.partition + 1 for record in records)])
            self._topics[name] = {
                partition: sorted((r for r in records if r.partition == partition), key=lambda r: r.offset)
                for partition in range(partitions)
            }

    def spans(self, topic: str) -> Spans:
        """Give the offsets of each partition, with so many markers of transactions behind the last record."""
        return {
            partition: Span(0, records[-1].offset + 1 + self._markers if records else 0)
            for partition, records in self._topics[topic].items()
        }

    def read(self, topic: str, spans: Spans) -> Iterator[Batch]:
        """Read the records of the spans."""
        for partition, span in spans.items():
            records = [r for r in self._topics[topic][partition] if span.begin <= r.offset < span.end]
            if records:
                yield batch_of(records)


def judge_outputs(
    source: Source,
    outputs: Outputs,
    *,
    rules: Rules = RULES,
    positions: dict[int, int] | None = None,
    as_is: bool = False,
    at_rest: bool = True,
    markers: int = 0,
    shared: int | None = None,
    fewest_shared: int | None = None,
    look: Callable[[Judgement], None] = lambda _: None,
) -> Judgement:
    """Judge outputs as the verdict does. `positions`: how far a job that has not caught up has committed.

    `at_rest`: no transaction is open on the outputs. `markers`: how many stand at the end of each partition.
    `shared`: the number of clocks; `fewest_shared`: the fewest of a run; if not one for each partition.
    """
    topics = Topics(source, outputs, markers)
    store = shared_store.get()
    spans = topics.spans(NAMES.visits)
    parse = VisitRows(rules.window_ms)
    visits = topic_rows(topics, NAMES.visits, spans, parse, store.folder)
    clocks = load_source(store, visits, spans, rules=rules, arrivals=None)
    outputs_spans = {name: topics.spans(name) for name in (NAMES.windows, NAMES.late, NAMES.rejected)}
    load_outputs(store, topics, NAMES, outputs_spans, rules)
    judgement = judge(
        store,
        FlinkFacts(
            names=NAMES,
            rules=rules,
            shared=shared or max(1, len(source)),
            fewest_shared=fewest_shared or shared or max(1, len(source)),
            clocks=clocks,
            partitions=dict.fromkeys(outputs_spans, (OUTPUT_PARTITIONS, OUTPUT_PARTITIONS)),
            positions=(
                {partition: span.end for partition, span in topics.spans(NAMES.visits).items()}
                if positions is None
                else positions
            ),
            caught_up=positions is None,
            outputs_at_rest=at_rest,
            as_is=as_is,
        ),
    )
    look(judgement)
    return judgement
