"""Worlds for the judge of the source: a topic in memory, and the ledgers of the generators that wrote it, as files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from faultline.formats.digest import record_digest
from faultline.formats.ledger import SUFFIX, acked_line, ledger_files, sent_line, topic_line
from faultline.formats.verdict import CATEGORIES, Finding, Verdict
from faultline.verdict.checker import Stopwatch
from faultline.verdict.loading import topic_rows
from faultline.verdict.records import Batch, Record, Span, Spans, batch_of
from faultline.verdict.source.findings import judgement
from faultline.verdict.source.judge import SourceFacts
from faultline.verdict.source.ledger import load_ledgers
from faultline.verdict.source.reader import load_records, record_rows
from faultline.verdict.store import open_store

TOPIC = "visits"
TOPIC_ID = "AbCdEfGhIjKlMnOpQrSt_-"
OTHER_ID = "ZbCdEfGhIjKlMnOpQrSt_-"
START = 1_767_225_600_000
PARTITIONS = (0, 1)


class MemoryTopic:
    """A topic in memory; an offset without a record is a transaction marker's, as in Kafka."""

    def __init__(self) -> None:
        self.records: dict[int, dict[int, Record]] = {partition: {} for partition in PARTITIONS}
        self.ends = dict.fromkeys(PARTITIONS, 0)

    def append(self, partition: int, key: bytes | None, value: bytes | None, timestamp: int) -> int:
        """Write a record at the end of a partition and return its offset."""
        offset = self.ends[partition]
        self.records[partition][offset] = Record(partition, offset, key, value, timestamp)
        self.ends[partition] += 1
        return offset

    def replace(self, record: Record, **changes: object) -> None:
        """Alter a record where it is."""
        self.records[record.partition][record.offset] = record._replace(**changes)  # type: ignore[arg-type]

    def spans(self) -> Spans:
        """Give the whole topic."""
        return {partition: Span(0, end) for partition, end in self.ends.items()}

    def read(self, topic: str, spans: Spans) -> Iterator[Batch]:
        """Read the records of the spans, in small batches."""
        assert topic == TOPIC
        for partition, span in spans.items():
            found = [record for offset, record in self.records[partition].items() if span.begin <= offset < span.end]
            found.sort(key=lambda record: record.offset)
            for begin in range(0, len(found), 50):
                yield batch_of(found[begin : begin + 50])


@dataclass
class Run:
    """The lines of one run of a generator; `torn` is the text after the last whole line."""

    topic_id: str = TOPIC_ID
    lines: list[str] = field(default_factory=list)
    torn: str = ""
    sent: int = 0


@dataclass
class Visit:
    """A visit that was sent, and where it was acknowledged."""

    run: int
    number: int
    record: Record
    acked: int | None


class World:
    """A topic, the runs that wrote it, and what they sent."""

    def __init__(self) -> None:
        self.topic = MemoryTopic()
        self.runs: list[Run] = []
        self.visits: list[Visit] = []
        self.clock = START

    def begin_run(self, topic_id: str = TOPIC_ID) -> Run:
        """Start a generator."""
        self.runs.append(Run(topic_id))
        return self.runs[-1]

    def send(self, partition: int, key: bytes, value: bytes, timestamp: int, *, arrives: bool, acked: bool) -> Visit:
        """Send a visit in the newest run: whether the broker writes it, and whether its answer comes back."""
        run = self.runs[-1]
        self.clock += 3
        number, run.sent = run.sent, run.sent + 1
        run.lines.append(
            sent_line(
                number, partition, timestamp=timestamp, clock=self.clock, digest=record_digest(key, value), key=key
            )
        )
        offset = self.topic.append(partition, key, value, timestamp) if arrives else -1
        if acked:
            run.lines.append(acked_line(number, partition, offset, self.clock + 2))
        record = Record(partition, offset, key, value, timestamp)
        self.visits.append(Visit(len(self.runs) - 1, number, record, offset if acked else None))
        return self.visits[-1]

    def write(self, folder: Path) -> list[Path]:
        """Write the ledgers as a generator does, and list them as the checker does."""
        (folder / TOPIC).mkdir(parents=True, exist_ok=True)
        for number, run in enumerate(self.runs):
            text = topic_line(TOPIC, run.topic_id, START) + "".join(run.lines) + run.torn
            (folder / TOPIC / f"20260101T0000{number:02d}.000Z-1{SUFFIX}").write_bytes(
                text.encode("utf-8", "surrogateescape")
            )
        return ledger_files(folder, TOPIC)

    def unique(self, *, acked: bool, arrived: bool) -> list[Visit]:
        """Choose visits whose content, partition and timestamp no other visit has."""
        contents = [(visit.record.key, visit.record.value) for visit in self.visits]
        return [
            visit
            for visit, content in zip(self.visits, contents, strict=True)
            if contents.count(content) == 1
            and (visit.acked is not None) == acked
            and (visit.record.offset >= 0) == arrived
        ]


def random_world(seed: int, sends: int = 120) -> World:
    """A faultless world: some runs, killed or not, some visits without an answer, some contents sent again."""
    chance = random.Random(seed)
    world = World()
    if chance.random() < 0.3:
        world.begin_run(OTHER_ID)
        world.runs[-1].lines.append(
            sent_line(0, 0, timestamp=START, clock=START, digest=record_digest(b"old", b"old"), key=b"old")
        )
    for _ in range(chance.randrange(1, 4)):
        run = world.begin_run()
        for _ in range(chance.randrange(1, sends)):
            _random_send(world, chance)
            if chance.random() < 0.02:
                world.topic.ends[chance.choice(PARTITIONS)] += 1
        _shuffle_answers(run, chance)
        if chance.random() < 0.5:
            # Killed: the last visits have no answer, and the last line may be cut off.
            for _ in range(chance.randrange(1, 12)):
                _random_send(world, chance, answered=False)
            line = sent_line(
                run.sent, 0, timestamp=START, clock=START, digest=record_digest(b"cut", b"cut"), key=b"cut"
            )
            run.torn = line[: chance.randrange(len(line))]
    return world


def _random_send(world: World, chance: random.Random, *, answered: bool = True) -> None:
    old = chance.choice(world.visits).record if world.visits and chance.random() < 0.1 else None
    if old is not None:
        partition, key, value, timestamp = old.partition, old.key or b"", old.value or b"", old.timestamp
        if chance.random() < 0.3:
            timestamp += 1
    else:
        partition = chance.choice(PARTITIONS)
        key = chance.choice([b"visit-%d" % chance.randrange(50), "Straße, 1%\n".encode(), b"", b"\xff\xfe"])
        value = b'{"visit_id":"%d"}' % len(world.visits)
        timestamp = world.clock - chance.randrange(5_000)
    acked = answered and chance.random() < 0.95
    arrives = acked or chance.random() < 0.5
    world.send(partition, key, value, timestamp, arrives=arrives, acked=acked)


def _shuffle_answers(run: Run, chance: random.Random) -> None:
    """Let answers come later than the visits that were sent after theirs."""
    late: list[str] = []
    lines = []
    for line in run.lines:
        if line.startswith("acked") and chance.random() < 0.5:
            late.append(line)
        else:
            lines.append(line)
        if late and chance.random() < 0.3:
            lines.append(late.pop(chance.randrange(len(late))))
    run.lines = lines + late


@dataclass(frozen=True)
class Judged:
    """A verdict, and all its findings by category."""

    verdict: Verdict
    findings: dict[str, list[Finding]]


def judge_source(world: World, folder: Path, *, caught_up: bool = True, spans: Spans | None = None) -> Judged:
    """Write the ledgers, read everything as the checker does, and judge; the sums of the model must hold."""
    read = world.topic.spans() if spans is None else spans
    clock = Stopwatch()
    with open_store(in_memory=True) as store:
        load_records(store, topic_rows(world.topic, TOPIC, read, record_rows, store.folder))
        ledgers = load_ledgers(store, world.write(folder), TOPIC_ID)
        judged = judgement(store, world.topic, SourceFacts(TOPIC, read, ledgers, caught_up), clock)
        findings = {category: list(judged.findings(category)) for category in CATEGORIES}
    verdict = judged.verdict
    faults = verdict.lost - verdict.duplicated - verdict.unexpected
    assert verdict.expected == verdict.observed + faults + verdict.pending
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values()) == verdict.observed
    for category, found in findings.items():
        assert len(found) == getattr(verdict, category)
        assert [each for each in verdict.examples if each.category == category] == found[:3]
    return Judged(verdict, findings)
