"""Runs of the windowing job with checkpoints, kills and restores, and sources that show what a wrong one does.

What a job writes between two checkpoints is one transaction on each of its topics. A restore takes state and positions
from the last checkpoint and aborts what was written since: such records keep their offsets, and readers of committed
records pass over them.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from faultline.formats.visit import CLOSING_PREFIX, iso_time
from generator.sender import partition_of
from tests.judge.flink_world import (
    BOUND_MS,
    OUTPUT_PARTITIONS,
    START,
    WINDOW_MS,
    Job,
    Outputs,
    Source,
    add,
    visit_value,
)

TOPICS = ("windows", "late", "rejected")
"""The job's topics, as `Outputs` names them."""

UNPARSABLE: tuple[bytes | None, ...] = (
    None,
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'"a visit"',
    b'{"visit_id":"v1"}',
    b'{"visit_id":"","event_time":"2026-01-01T00:00:01Z"}',
    b'{"visit_id":7,"event_time":"2026-01-01T00:00:01Z"}',
    b'{"visit_id":"v1\\u0000","event_time":"2026-01-01T00:00:01Z"}',
    b'{"visit_id":"\\ud800","event_time":"2026-01-01T00:00:01Z"}',
    b'{"visit_id":"v1","event_time":"2026-02-30T00:00:01Z"}',
    b'{"visit_id":"v1","event_time":"2026-01-01T00:00:01"}',
    b'{"visit_id":"v1","event_time":"2026-01-01T00:00:01+02:00"}',
    b'{"visit_id":"v1","event_time":"2026-01-01T00:00:01Z\\n"}',
    b'{"visit_id":"v1","event_time":1767225601000}',
    b'{"visit_id":"v1","event_time":"2026-01-01T00:00:01Z"} {}',
    b'{"visit_id":"v1","event_time":"2026-01-01T00:00:01Z","page":NaN}',
    b'\xef\xbb\xbf{"visit_id":"v1","event_time":"2026-01-01T00:00:01Z"}',
    b'{"visit_id":"v1","event_time":"9999-01-01T00:00:00Z"}',
    b'{"visit_id":"v1","event_time":"1969-12-31T23:59:59Z"}',
    b"[" * 2_000,
)
"""Values that are not visits; some of them almost are."""


def odd_visit_value(visit_id: str, event_time: int) -> bytes:
    """Write a visit as no generator of this project does: other order and spelling, a name twice, line breaks."""
    moment = iso_time(event_time).removesuffix("Z") + "999999+00:00"
    return (
        f'\r\n{{"event_time":0, "event_time":"{moment}",\n"page":{{"visit_id":1}}, "visit_id":"{visit_id}"}}'.encode()
    )


@dataclass
class Transaction:
    """Records that one attempt wrote to each topic, in the order of writing, and the topics that keep these records."""

    written: Outputs
    kept: set[str]


def published(transactions: Iterable[Transaction], partitions: int = OUTPUT_PARTITIONS) -> Outputs:
    """Append transactions to the topics as a producer and the broker do, and give the committed records."""
    outputs = Outputs()
    ends = {(topic, partition): 0 for topic in TOPICS for partition in range(partitions)}
    for transaction in transactions:
        for topic in TOPICS:
            touched = set()
            for number, record in enumerate(getattr(transaction.written, topic)):
                partition = number % partitions if record.key is None else partition_of(record.key, partitions)
                if topic in transaction.kept:
                    place = record._replace(partition=partition, offset=ends[topic, partition])
                    getattr(outputs, topic).append(place)
                ends[topic, partition] += 1
                touched.add(partition)
            for partition in touched:
                # The marker of the transaction's end takes an offset too.
                ends[topic, partition] += 1
    return outputs


class Run:
    """A job over a source, with its last checkpoint. A mutant overrides how a checkpoint is taken or used."""

    def __init__(self, source: Source, job: type[Job] = Job) -> None:
        self.source = source
        self.running = job(source)
        self.positions = dict.fromkeys(source, 0)
        self.transactions: list[Transaction] = []
        self._saved = copy.deepcopy(vars(self.running))
        self._saved_positions = dict(self.positions)

    def left(self) -> list[int]:
        """Give the partitions that have records to read."""
        return [partition for partition, records in self.source.items() if self.positions[partition] < len(records)]

    def read(self, partition: int) -> None:
        """Read the next record of a partition."""
        record = self.source[partition][self.positions[partition]]
        self.positions[partition] += 1
        self.running.read(record)

    def checkpoint(self) -> None:
        """Save state and positions, and commit what was written since the last checkpoint."""
        self.end_transaction(set(TOPICS))
        self._saved = copy.deepcopy(vars(self.running))
        self._saved_positions = dict(self.positions)

    def restore(self) -> None:
        """Kill the job and start it again from its last checkpoint; what was written since is rolled back."""
        self.end_transaction(set())
        state = copy.deepcopy(self._saved)
        self.positions = dict(self._saved_positions)
        self.alter(state)
        self.running = type(self.running)(self.source)
        vars(self.running).update(state)

    def end_transaction(self, kept: set[str]) -> None:
        """Commit what was written since the last checkpoint on some topics, and abort it on the others."""
        self.transactions.append(Transaction(self.running.written, kept))
        self.running.written = Outputs()

    def alter(self, state: dict[str, object]) -> None:
        """Change the restored state or `positions` as no restore may do; a faultless job does nothing here."""

    def outputs(self) -> Outputs:
        """Give the committed records of the three topics."""
        return published(self.transactions)


def read_all(run: Run, chance: random.Random) -> Outputs:
    """Read the source to its end, with restores on the way; the same `chance` gives the same order of reading."""
    longest = chance.choice([1, 1, 5, 40])
    while left := run.left():
        partition = chance.choice(left)
        for _ in range(chance.randint(1, longest)):
            if partition in run.left():
                run.read(partition)
        roll = chance.randrange(100)
        if roll < 10:
            run.checkpoint()
        elif roll < 15:
            run.restore()
    run.checkpoint()
    return run.outputs()


@dataclass
class Writer:
    """A generator's run: it appends visits with disorder, late, repeated and unparsable ones to a source.

    Records arrive (`now`) faster than event time (`clock`) goes on: no partition pauses, so none may count as idle.
    """

    source: Source
    chance: random.Random
    clock: int = START
    now: int = START
    grid: int = field(init=False)

    def __post_init__(self) -> None:
        # On a grid, event times meet the edges of windows and the bound exactly.
        self.grid = self.chance.choice([1, 1, 500, 2_500])

    def write(self, records: int) -> None:
        """Append some records; each visit_id has its partition but one, which is in all of them."""
        chance, partitions = self.chance, len(self.source)
        for _ in range(records):
            self.clock += chance.randrange(400)
            self.now += chance.randrange(50)
            number = chance.randrange(6 * partitions)
            visit_id = ("v", "V", "é", "v ")[number % 4] + str(number // 4)
            partition = number % partitions
            if chance.random() < 0.1:
                visit_id, partition = "everywhere", chance.randrange(partitions)
            self._append(partition, visit_id)

    def _append(self, partition: int, visit_id: str) -> None:
        chance, roll = self.chance, self.chance.random()
        disorder = chance.choice([0, 0, 0, chance.randrange(BOUND_MS), chance.randrange(12 * BOUND_MS)])
        # Also a millisecond before an edge.
        event_time = (self.clock - disorder) // self.grid * self.grid - (self.grid > 1 and chance.random() < 0.2)
        key = visit_id.encode() if chance.random() < 0.9 else chance.choice([None, b"", b"other"])
        if roll < 0.06:
            add(self.source, partition, key, chance.choice(UNPARSABLE), self.now)
        elif roll < 0.10 and self.source[partition]:
            copied = chance.choice(self.source[partition])
            add(self.source, partition, copied.key, copied.value, copied.timestamp)
        elif roll < 0.15:
            add(self.source, partition, key, odd_visit_value(visit_id, event_time), self.now)
        else:
            add(self.source, partition, key, visit_value(visit_id, event_time), self.now)

    def close(self) -> None:
        """Append closing visits that move every partition past the last window, and go on behind them."""
        closing = self.clock // WINDOW_MS * WINDOW_MS + WINDOW_MS + BOUND_MS
        for moment in (closing, closing + 1):
            for partition in self.source:
                visit_id = f"{CLOSING_PREFIX}{partition}"
                add(self.source, partition, visit_id.encode(), visit_value(visit_id, moment), self.now)
        self.clock = closing + 1


def settled_source(chance: random.Random, partitions: int, records: int) -> Source:
    """Write a source by two runs of the generator, each settled at its end."""
    writer = Writer({partition: [] for partition in range(partitions)}, chance)
    for _ in range(2):
        writer.write(records // 2)
        writer.close()
    return writer.source
