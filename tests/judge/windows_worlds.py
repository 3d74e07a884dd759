"""Random worlds of the windowing job as Hypothesis draws them: lists of small things, so that a failure shrinks.

A world is a source, and how a faultless job reads it: in which order, in which time, with which checkpoints, kills and
restores on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from faultline.formats.verdict import Verdict
from faultline.formats.visit import CLOSING_PREFIX, Visit, parse_visit
from faultline.verdict.flink.clock import Rules
from faultline.verdict.records import Record
from tests import tiers
from tests.judge.flink_world import BOUND_MS, START, WINDOW_MS, Job, Source, visit_value
from tests.judge.windows_runs import TOPICS, UNPARSABLE, Run, odd_visit_value

IDLE_SECONDS = 5
DELAY_MS = 400
"""Longest time in milliseconds that a record is on its way in these worlds."""
RULES = Rules(WINDOW_MS, BOUND_MS, IDLE_SECONDS * 1000 - 1_500)
"""A pause as the checker counts it: the job counts whole seconds, and a visit takes a moment to arrive."""
IDS = ("a", "b", "A", "é", "🙂 ")


class Sent(NamedTuple):
    """One record of the source: it arrives so many ms after the one before, with an event time so many ms earlier."""

    partition: int
    gap: int
    late: int
    visit_id: str
    kind: str | bytes | None
    """`visit`, `odd`, `again` (an earlier record of the partition), `gap` (an offset without a record), or a value."""


class Ahead(NamedTuple):
    """Visits whose event times are so many ms ahead of all before, one in each of the partitions, and a closing.

    `reached`: the closing visits come after them (1), before them (0), or are not sent (None).
    """

    partitions: tuple[int, ...]
    ahead: int
    reached: int | None


class Step(NamedTuple):
    """A run of reads from one of the partitions that have records, and what happens then."""

    partition: int
    reads: int
    then: str


@dataclass
class World:
    """Records that are sent, and how they are read.

    `live`: the job reads a record when it arrives, and counts idle partitions; else all records are there before the
    job reads, and it reads in any order. `closing`: number of closing visits that each partition has at its end.
    `skews`: how far event time is ahead in each partition. `grid`: event times are multiples of the grid or a
    millisecond less, so that they meet the edges of windows and the bound. `ahead`: visits after the closing visits.
    `clocks`: how many the job has until its second restore, at most one for each partition.
    """

    partitions: int
    sent: list[Sent]
    steps: list[Step]
    live: bool
    timestamps: str
    closing: int
    skews: tuple[int, ...] = (0, 0, 0, 0)
    grid: int = 1
    ahead: tuple[Ahead, ...] = ()
    clocks: int = 4

    def source(self) -> tuple[Source, dict[int, list[int]]]:
        """Write the source, and when each record arrives."""
        source: Source = {partition: [] for partition in range(self.partitions)}
        arrivals: dict[int, list[int]] = {partition: [] for partition in source}
        offsets = dict.fromkeys(source, 0)
        now = START

        def write(partition: int, key: bytes | None, value: bytes | None, timestamp: int) -> None:
            source[partition].append(Record(partition, offsets[partition], key, value, timestamp))
            arrivals[partition].append(now)
            offsets[partition] += 1

        for drawn, gap, late, visit_id, kind in self.sent:
            partition = drawn % self.partitions
            now += gap
            event_time = (now - late + self.skews[partition]) // self.grid * self.grid - (self.grid > 1 and late % 2)
            timestamp = event_time if self.timestamps == "event" else now
            if kind == "gap":
                offsets[partition] += 1
            elif kind == "again" and source[partition]:
                copied = source[partition][late % len(source[partition])]
                write(partition, copied.key, copied.value, timestamp)
            elif isinstance(kind, str):
                value = odd_visit_value if kind == "odd" else visit_value
                write(partition, visit_id.encode(), value(visit_id, event_time), timestamp)
            else:
                write(partition, None if late % 2 else b"key", kind, timestamp)

        def close(newest: int) -> None:
            closing = newest // WINDOW_MS * WINDOW_MS + WINDOW_MS + BOUND_MS
            for moment in range(closing, closing + self.closing):
                for partition in source:
                    visit_id = f"{CLOSING_PREFIX}{partition}"
                    write(partition, visit_id.encode(), visit_value(visit_id, moment), now)

        def newest() -> int:
            return max(
                (visit.event_time for records in source.values() for r in records if (visit := parse_visit(r.value))),
                default=START,
            )

        close(newest())
        for partitions, ahead, reached in self.ahead:
            before = newest()
            for partition in {each % self.partitions for each in partitions}:
                write(partition, b"ahead", visit_value("ahead", before + ahead), now)
            now += ahead % 10_000
            if reached is not None:
                close(before + reached * ahead)
        return source, arrivals


class LiveJob(Job):
    """The job with idle partitions: the clock of one without a visit in five seconds of reading follows the others."""

    def __init__(self, partitions: Iterable[int]) -> None:
        super().__init__(partitions)
        self.now = 0
        self.second: int | None = None
        self.seconds = 0
        self.read_in = dict.fromkeys(self.tops, 0)

    def decide(self, record: Record, visit: Visit, end: int) -> None:
        self.look(record)
        read_in = {clock: max(self.read_in[p] for p in self.tops if self.clock_of(p) == clock) for clock in self.passed}
        idle = [clock for clock in self.passed if self.seconds - read_in[clock] >= IDLE_SECONDS]
        tops = [top for p, top in self.tops.items() if self.clock_of(p) not in idle]
        known = [top for top in tops if top is not None]
        if len(known) == len(tops):
            for clock in idle:
                self.pass_to(clock, min(known) - self.bound_ms)
        self.advance()
        super().decide(record, visit, end)

    def look(self, record: Record) -> None:
        """Count the seconds in which something was read."""
        second = self.now // 1000
        self.seconds += self.second is not None and second > self.second
        self.second = second
        self.read_in[record.partition] = self.seconds


@dataclass
class Position:
    """A checkpoint: how many records are read of each partition, and how many transactions have ended."""

    read: dict[int, int]
    transactions: int


class Reader:
    """A faultless job that reads a world up to some number of records, and its checkpoints."""

    def __init__(self, world: World, reads: int | None = None) -> None:
        self.source, self._arrivals = world.source()
        self._live = world.live
        self._now = START
        self.run = Run(self.source, LiveJob if world.live else Job)
        self.clocks = self.fewest_clocks = min(world.clocks, world.partitions)
        self.run.running.set_clocks(self.clocks)
        self.run.checkpoint()
        self.checkpoints: list[Position] = []
        self._read(world.steps, reads)
        self._checkpoint()

    def offsets(self, checkpoint: Position) -> dict[int, int]:
        """Give the offsets that a checkpoint commits."""
        found = {}
        for partition, records in self.source.items():
            position = checkpoint.read[partition]
            end = records[-1].offset + 1 if records else 0
            found[partition] = records[position].offset if position < len(records) else end
        return found

    def _read(self, steps: list[Step], reads: int | None) -> None:
        budget = sum(map(len, self.source.values())) if reads is None else reads
        restores = 3
        for step in cycle(steps):
            ready = self._ready()
            if not ready or budget <= 0:
                return
            partition = ready[step.partition % len(ready)]
            for _ in range(step.reads):
                if budget > 0 and partition in self._ready(wait=False):
                    if isinstance(self.run.running, LiveJob):
                        self.run.running.now = self._now
                    self.run.read(partition)
                    self._now += 1
                    budget -= 1
            if step.then == "checkpoint":
                self._checkpoint()
            elif step.then == "restore" and restores:
                restores -= 1
                read = sum(self.run.positions.values())
                self.run.restore()
                if restores == 1:
                    self.clocks = len(self.source)
                self.run.running.set_clocks(self.clocks)
                # What is rolled back is read once more.
                budget += read - sum(self.run.positions.values())
                self._now += 20_000 * (restores % 2)

    def _ready(self, wait: bool = True) -> list[int]:
        """Give the partitions that have a record to read; live, of those that have arrived."""
        left = self.run.left()
        if not self._live or not left:
            return left
        arrivals = {p: self._arrivals[p][self.run.positions[p]] + DELAY_MS * (p % 2) for p in left}
        if wait:
            self._now = max(self._now, min(arrivals.values()))
        return [partition for partition in left if arrivals[partition] <= self._now]

    def _checkpoint(self) -> None:
        self.run.checkpoint()
        self.checkpoints.append(Position(dict(self.run.positions), len(self.run.transactions)))

    def half_committed(self, topics: set[str]) -> None:
        """Leave the newest transaction committed on these topics only, and open on the others."""
        self.run.transactions[-1].kept &= topics


# Far in the future or the past is rare: after such a visit the others show little.
_FAR = [-20_000, 60_000, -86_400_000, 86_400_000]
_LATE = st.one_of(
    st.sampled_from([0] * 20 + [1, 4_999, 5_000, 5_001, 9_999, 10_000, 15_000] * 2 + _FAR), st.integers(0, 20_000)
)
# One list with weights: `one_of` counts a strategy that it has twice only once.
_KINDS = st.sampled_from(["visit"] * 80 + ["odd", "again"] * 6 + ["gap"] * 3 + [*UNPARSABLE])
_RECORDS = st.lists(
    st.tuples(st.integers(0, 3), _LATE, st.sampled_from(IDS), _KINDS), min_size=1, max_size=12
)  # fmt: skip
_STRETCHES = st.lists(
    st.tuples(st.sampled_from([None, 0, None, 1]), st.sampled_from([0, 100, 1_000, 1_000, 2_500]), _RECORDS),
    min_size=1,
    max_size=8,
)
"""Stretches of the source: records of one partition only, so that the others pause, or of all, at one rate."""
_STEPS = st.lists(
    st.builds(Step, st.integers(0, 3), st.sampled_from([1, 2, 5, 40]), st.sampled_from(["", "checkpoint", "restore"])),
    min_size=1,
    max_size=12,
)
TOPIC_SETS = st.sets(st.sampled_from(TOPICS))


def _aheads(reached: tuple[int | None, ...]) -> st.SearchStrategy[Ahead]:
    return st.builds(
        Ahead,
        st.sampled_from([(0,), (1,), (0, 1), (0, 1, 2, 3)]),
        st.sampled_from([4_000, 12_000, 60_000, 3_600_000]),
        st.sampled_from(reached),
    )


@st.composite
def worlds(draw: st.DrawFn, closing: tuple[int, ...] = (1, 2), reached: tuple[int | None, ...] = (1, 0, None)) -> World:
    """Draw a world; `closing`: how many closing visits each partition has, `reached`: see Ahead; choices of both."""
    live = draw(st.booleans())
    return World(
        partitions=draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4])),
        sent=[
            Sent(partition if only is None else only, gap, late, visit_id, kind)
            for only, gap, records in draw(_STRETCHES)
            for partition, late, visit_id, kind in records
        ],
        steps=draw(_STEPS),
        live=live,
        # Event times say nothing of when a visit arrives.
        timestamps="arrival" if live else draw(st.sampled_from(["arrival", "event"])),
        closing=draw(st.sampled_from(closing)),
        skews=draw(st.tuples(*[st.sampled_from([0, 0, 30_000, -12_000])] * 4)),
        grid=draw(st.sampled_from([1, 2_500, 5_000])),
        ahead=tuple(draw(st.lists(_aheads(reached), max_size=3))),
        clocks=draw(st.sampled_from([4, 4, 4, 1, 2, 3])),
    )


def examples(number: int) -> settings:
    """Give the settings of a test with so many examples; a failing one prints what reproduces it."""
    return settings(
        max_examples=tiers.examples(number),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def says(verdict: Verdict) -> str:
    """Give the outcome with what is behind it, for a failure's message."""
    return "\n".join([verdict.outcome.value, verdict.reason, *(finding.text for finding in verdict.examples)])
