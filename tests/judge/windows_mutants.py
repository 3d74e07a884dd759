"""Windowing jobs that are wrong in one way each: the job itself, its restores, or the records on its topics.

Each is data: a name, what is wrong, and a small class or function that makes it so.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from faultline.formats.visit import (
    CLOSING_PREFIX,
    LATE_REASON,
    REASON_HEADER,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    Visit,
    parse_visit,
    refusal_reasons,
)
from faultline.verdict.records import Record
from tests.judge.flink_world import (
    BOUND_MS,
    OUTPUT_PARTITIONS,
    WINDOW_MS,
    Job,
    Outputs,
    Source,
    routed_record,
    window_record,
)
from tests.judge.windows_runs import TOPICS, Run, Transaction, read_all

ONE, SEVERAL, ANY = (1,), (2, 2, 3), (1, 2, 2, 3, 4)
"""Numbers of partitions, drawn from with a seed; a mutant that mixes up the partitions needs several."""


@dataclass(frozen=True)
class Mutant:
    """A wrong job, wrong restores of it, or what happens to its records afterwards.

    `partitions`: the numbers of partitions with which it goes wrong.
    """

    name: str
    wrong: str
    job: type[Job] = Job
    run: type[Run] = Run
    spoil: Callable[[Outputs, random.Random], None] = lambda outputs, chance: None
    partitions: Sequence[int] = ANY

    def outputs(self, source: Source, seed: int) -> Outputs:
        """Give what this job makes of a source; a seed is an order of reading."""
        outputs = read_all(self.run(source, self.job), random.Random(seed))
        self.spoil(outputs, random.Random(seed))
        return outputs


def one_in(number: int, *parts: object) -> bool:
    """Choose one thing in so many, the same ones in every run."""
    return zlib.crc32(repr(parts).encode()) % number == 0


def altered(record: Record, **fields: object) -> Record:
    """Change fields of a window's JSON."""
    return record._replace(value=json.dumps({**json.loads(record.value or b""), **fields}).encode())


# The clock


class MaximumClock(Job):
    def clock(self) -> int:
        return max(self.passed.values())


class OnePartitionClock(Job):
    def clock(self) -> int:
        return self.passed[min(self.passed)]


class ImpatientClock(Job):
    def clock(self) -> int:
        return min((passed for passed in self.passed.values() if passed), default=0)


class LateBySlowest(Job):
    def passed_for(self, record: Record) -> int:
        return self.closed


class LateByFastest(Job):
    def passed_for(self, record: Record) -> int:
        return max(self.passed.values())


class NoBound(Job):
    bound_ms = 0


class DoubledBound(Job):
    bound_ms = 2 * BOUND_MS


class LongBound(Job):
    bound_ms = BOUND_MS + 1


class SteppingClock(Job):
    reads = 0

    def pass_to(self, partition: int, now: int) -> None:
        self.reads += 1
        if self.reads % 10 == 0:
            super().pass_to(partition, now)


class TimestampClock(Job):
    def time_of(self, record: Record, visit: Visit) -> int:
        return record.timestamp


class HastyIdleness(Job):
    """Treats a partition as idle when the last twenty records came from the others."""

    def __init__(self, partitions: Sequence[int]) -> None:
        super().__init__(partitions)
        self.recent: list[int] = []

    def read(self, record: Record) -> None:
        self.recent = [*self.recent[-19:], record.partition]
        super().read(record)

    def clock(self) -> int:
        if len(self.recent) < 20:
            return super().clock()
        return min(self.passed[partition] for partition in set(self.recent))


# Windows


class LowerEdge(Job):
    def decide(self, record: Record, visit: Visit, end: int) -> None:
        before = visit.event_time - 1
        super().decide(record, visit, before - before % WINDOW_MS + WINDOW_MS)


class EarlyWindows(Job):
    """Writes a window before the bound is over, and later visits as a second window."""

    def advance(self) -> None:
        super().advance()
        newest = min(top or 0 for top in self.tops.values())
        for key in [key for key in self.open if key[1] <= newest]:
            self.fire(*key, self.open.pop(key))


class HalfWindows(Job):
    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        if len(times) > 1 and one_in(8, visit_id, end):
            super().fire(visit_id, end, times[: len(times) // 2])
            times = times[len(times) // 2 :]
        super().fire(visit_id, end, times)


class ForgottenVisit(Job):
    def decide(self, record: Record, visit: Visit, end: int) -> None:
        if not one_in(1000, record):
            super().decide(record, visit, end)


class RepeatedOnce(Job):
    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        super().fire(visit_id, end, sorted(set(times)))


class FirstRead(Job):
    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        first = json.loads(window_record(visit_id, end, times[:1]).value or b"")["first_event_time"]
        self.written.windows.append(altered(window_record(visit_id, end, times), first_event_time=first))


class WrongKey(Job):
    before = "v0"

    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        super().fire(self.before if one_in(20, visit_id, end) else visit_id, end, times)
        self.before = visit_id


class SwappedVisits(Job):
    before: tuple[str, int, int] = ("", 0, 0)

    def decide(self, record: Record, visit: Visit, end: int) -> None:
        other, other_end, time = self.before
        times = self.open.get((other, other_end), [])
        if other_end == end > self.passed_for(record) and time in times and one_in(10, record):
            times[times.index(time)] = visit.event_time
            visit = Visit(visit.visit_id, time)
        super().decide(record, visit, end)
        self.before = (visit.visit_id, end, visit.event_time)


class RecordKeys(Job):
    def decide(self, record: Record, visit: Visit, end: int) -> None:
        super().decide(record, Visit((record.key or b"").decode(), visit.event_time), end)


class Backwards(Job):
    def advance(self) -> None:
        before = len(self.written.windows)
        super().advance()
        self.written.windows[before:] = reversed(self.written.windows[before:])


class ForgottenWindow(Job):
    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        if not one_in(30, visit_id, end):
            super().fire(visit_id, end, times)


class WindowTwice(Job):
    def fire(self, visit_id: str, end: int, times: list[int]) -> None:
        super().fire(visit_id, end, times)
        if one_in(30, visit_id, end):
            super().fire(visit_id, end, times)


# Late and unparsable records


class LateCounted(Job):
    def set_late(self, record: Record, visit: Visit) -> None:
        end = visit.event_time - visit.event_time % WINDOW_MS + WINDOW_MS
        self.open.setdefault((visit.visit_id, end), []).append(visit.event_time)


class LateCountedToo(LateCounted):
    def set_late(self, record: Record, visit: Visit) -> None:
        super().set_late(record, visit)
        Job.set_late(self, record, visit)


class OnTimeSetAside(Job):
    def decide(self, record: Record, visit: Visit, end: int) -> None:
        if end > self.passed_for(record) and one_in(50, record):
            self.set_late(record, visit)
        else:
            super().decide(record, visit, end)


class OnTimeSetAsideToo(Job):
    def decide(self, record: Record, visit: Visit, end: int) -> None:
        if end > self.passed_for(record) and one_in(50, record):
            self.set_late(record, visit)
        super().decide(record, visit, end)


class UnparsableAsLate(Job):
    def reject(self, record: Record) -> None:
        self.written.late.append(routed_record(record, LATE_REASON))


class LenientParser(Job):
    """Takes a document with something behind it for a visit."""

    def read(self, record: Record) -> None:
        value = record.value
        if value is not None and value.endswith(b" {}"):
            super().read(record._replace(value=value.removesuffix(b" {}")))
        else:
            super().read(record)


class StrictParser(Job):
    """Takes no time zone but Z."""

    def read(self, record: Record) -> None:
        if parse_visit(record.value) and b"+00:00" in (record.value or b""):
            self.written.rejected.append(routed_record(record, refusal_reasons(b"{}")[1]))
        else:
            super().read(record)


# Restores


class ClockJumps(Run):
    def alter(self, state: dict[str, object]) -> None:
        passed = cast("dict[int, int]", state["passed"])
        state["passed"] = {partition: end and end + 30_000 for partition, end in passed.items()}


class ClockLost(Run):
    def alter(self, state: dict[str, object]) -> None:
        state |= {"passed": dict.fromkeys(self.source, 0), "closed": 0}


class WindowsLost(Run):
    def alter(self, state: dict[str, object]) -> None:
        state["open"] = {}


class CountedTwice(Run):
    def alter(self, state: dict[str, object]) -> None:
        state["open"] = {key: 2 * times for key, times in cast("dict[object, list[int]]", state["open"]).items()}


class ReadTooFar(Run):
    def alter(self, state: dict[str, object]) -> None:
        partition = max(self.left(), default=0)
        self.positions[partition] = min(self.positions[partition] + 2, len(self.source[partition]))


class ReadTooEarly(Run):
    def alter(self, state: dict[str, object]) -> None:
        partition = max(self.positions)
        self.positions[partition] = max(self.positions[partition] - 2, 0)


class PositionsKept(Run):
    def restore(self) -> None:
        positions = self.positions
        super().restore()
        self.positions = positions


class StateKept(Run):
    def alter(self, state: dict[str, object]) -> None:
        state |= {name: value for name, value in vars(self.running).items() if name != "written"}


class WindowsNotRolledBack(Run):
    def restore(self) -> None:
        self.end_transaction({"windows"})
        super().restore()


class AbortedRead(Run):
    def outputs(self) -> Outputs:
        for transaction in self.transactions:
            transaction.kept |= set(TOPICS)
        return super().outputs()


class TransactionLost(Run):
    """A restore aborts the newest committed transaction of one topic."""

    topic = "windows"

    def restore(self) -> None:
        committed = [transaction for transaction in self.transactions if len(transaction.kept) == len(TOPICS)]
        if committed:
            committed[-1].kept.discard(self.topic)
        super().restore()


class LateTransactionLost(TransactionLost):
    topic = "late"


class RejectedTransactionLost(TransactionLost):
    topic = "rejected"


class CommittedTwice(Run):
    def restore(self) -> None:
        super().restore()
        committed = [transaction for transaction in self.transactions if transaction.kept]
        self.transactions += [Transaction(one.written, set(one.kept)) for one in committed[-1:]]


class Drained(Run):
    """The job writes at its end what no clock has closed, as Flink does with --drain."""

    def outputs(self) -> Outputs:
        for (visit_id, end), times in sorted(self.running.open.items(), key=lambda window: window[0][1]):
            self.running.fire(visit_id, end, times)
        self.end_transaction(set(TOPICS))
        return super().outputs()


# Records on the topics


def _closing(record: Record) -> bool:
    return (record.key or b"").startswith(CLOSING_PREFIX.encode())


def _choose(
    records: list[Record], chance: random.Random, fits: Callable[[Record], bool] = lambda record: True
) -> int | None:
    """Choose a record that fits and give its index."""
    return chance.choice([index for index, record in enumerate(records) if fits(record)] or [None])


def spoiler(
    topic: str, act: Callable[[list[Record], int], object], fits: Callable[[Record], bool]
) -> Callable[[Outputs, random.Random], None]:
    """Make a spoiler that acts on the records of a topic, at the index of one that fits."""

    def spoil(outputs: Outputs, chance: random.Random) -> None:
        records: list[Record] = getattr(outputs, topic)
        index = _choose(records, chance, fits)
        if index is not None:
            act(records, index)

    return spoil


def change(
    topic: str, how: Callable[[Record, list[Record]], Record], fits: Callable[[Record], bool] = lambda record: True
) -> Callable[[Outputs, random.Random], None]:
    """Make a spoiler that changes one record of a topic."""

    def replace(records: list[Record], index: int) -> None:
        records[index] = how(records[index], records)

    return spoiler(topic, replace, fits)


def remove(
    topic: str, fits: Callable[[Record], bool] = lambda record: True
) -> Callable[[Outputs, random.Random], None]:
    """Make a spoiler that takes one record away."""
    return spoiler(topic, lambda records, index: records.pop(index), fits)


def append(record: Record, records: list[Record]) -> None:
    """Write a record at the end of its partition."""
    offsets = [other.offset for other in records if other.partition == record.partition]
    records.append(record._replace(offset=max(offsets, default=-1) + 1))


def repeat(
    topic: str, fits: Callable[[Record], bool] = lambda record: True
) -> Callable[[Outputs, random.Random], None]:
    """Make a spoiler that writes one record again, behind all others."""
    return spoiler(topic, lambda records, index: append(records[index], records), fits)


def disorder(topic: str) -> Callable[[Outputs, random.Random], None]:
    """Make a spoiler that exchanges two records of one key, and of one partition of the source."""

    def spoil(outputs: Outputs, chance: random.Random) -> None:
        records: list[Record] = getattr(outputs, topic)
        index = _choose(records, chance, lambda record: record.key is not None)
        if index is None:
            return
        first = records[index]
        where = dict(first.headers).get(SOURCE_PARTITION_HEADER)

        def fits(record: Record) -> bool:
            same = record.key == first.key and dict(record.headers).get(SOURCE_PARTITION_HEADER) == where
            return same and record != first

        other = _choose(records, chance, fits)
        if other is not None:
            second = records[other]
            records[index] = second._replace(offset=first.offset)
            records[other] = first._replace(offset=second.offset)

    return spoil


def _other_partition(record: Record, records: list[Record]) -> Record:
    partition = (record.partition + 1) % OUTPUT_PARTITIONS
    free = max((other.offset for other in records if other.partition == partition), default=-1) + 1
    return record._replace(partition=partition, offset=free)


def _header(record: Record, name: str, value: bytes | None) -> Record:
    return record._replace(headers=tuple((n, value if n == name else v) for n, v in record.headers))


def _next_offset(record: Record, records: list[Record]) -> Record:
    offset = int(dict(record.headers)[SOURCE_OFFSET_HEADER] or b"0")
    return _header(record, SOURCE_OFFSET_HEADER, str(offset + 1).encode())


def _json_replaced(old: str, new: str) -> Callable[[Record, list[Record]], Record]:
    def how(record: Record, records: list[Record]) -> Record:
        return record._replace(value=(record.value or b"").replace(old.encode(), new.encode(), 1))

    return how


def _counted_more(record: Record, records: list[Record]) -> Record:
    return altered(record, count=json.loads(record.value or b"")["count"] + 1)


def _without(name: str) -> Callable[[Record, list[Record]], Record]:
    return lambda record, _: record._replace(headers=tuple(header for header in record.headers if header[0] != name))


CLOCKS = (
    Mutant(
        "clock-maximum",
        "windows close by the fastest clock",
        MaximumClock,
        partitions=SEVERAL,
    ),
    Mutant(
        "clock-of-one-partition",
        "windows close by the first clock",
        OnePartitionClock,
        partitions=SEVERAL,
    ),
    Mutant(
        "clock-impatient",
        "windows do not wait for partitions that have not passed any",
        ImpatientClock,
        partitions=SEVERAL,
    ),
    Mutant(
        "late-by-the-slowest",
        "a visit is late by the slowest clock, not by that of its partition",
        LateBySlowest,
        partitions=SEVERAL,
    ),
    Mutant(
        "late-by-the-fastest",
        "a visit is late by the fastest clock, not by that of its partition",
        LateByFastest,
        partitions=SEVERAL,
    ),
    Mutant("clock-without-bound", "the out-of-orderness bound is 0", NoBound),
    Mutant("clock-bound-doubled", "the out-of-orderness bound is doubled", DoubledBound),
    Mutant("clock-bound-longer", "the out-of-orderness bound is a millisecond long", LongBound, partitions=ONE),
    Mutant("clock-steps", "the clocks move with every tenth visit only", SteppingClock),
    Mutant(
        "clock-timestamps",
        "the clocks follow the timestamps of records",
        TimestampClock,
        partitions=(1, 1, 2, 3),
    ),
    Mutant(
        "clock-hasty-idleness",
        "a partition is idle after twenty records of the others",
        HastyIdleness,
        partitions=SEVERAL,
    ),
)
WINDOWS = (
    Mutant("window-lower-edge", "a window begins a millisecond late: its edge belongs to the one before", LowerEdge),
    Mutant("window-early", "a window is written before the bound is over, and a second one for the rest", EarlyWindows),
    Mutant("window-split", "some windows are written as two halves", HalfWindows),
    Mutant("visit-forgotten", "one visit in a thousand is not counted", ForgottenVisit),
    Mutant("repeated-once", "visits of one id with the same time are counted once", RepeatedOnce),
    Mutant("first-read", "first_event_time is the time of the visit read first", FirstRead),
    Mutant("wrong-key", "a few windows have the right counts under the key of the window before", WrongKey),
    Mutant("visits-swapped", "a few visits are counted under each other's key", SwappedVisits),
    Mutant("record-keys", "visits are counted by the record's key, not by visit_id", RecordKeys),
    Mutant("backwards", "windows that fire together are written newest first", Backwards),
    Mutant("window-forgotten", "one window in thirty is not written", ForgottenWindow),
    Mutant("window-twice", "one window in thirty is written twice", WindowTwice),
)
ROUTES = (
    Mutant("late-counted", "a late visit is counted in a further window instead of set aside", LateCounted),
    Mutant("late-counted-too", "a late visit is set aside and counted in a further window", LateCountedToo),
    Mutant("on-time-set-aside", "a few visits on time are set aside as late", OnTimeSetAside),
    Mutant("on-time-set-aside-too", "a few visits on time are counted, and set aside as late too", OnTimeSetAsideToo),
    Mutant("unparsable-as-late", "unparsable records are set aside as late visits", UnparsableAsLate),
    Mutant("parser-lenient", "a document with something after it is treated as a visit", LenientParser),
    Mutant("parser-strict", "visits that write UTC as +00:00 are rejected", StrictParser),
)
RESTORES = (
    Mutant("restore-clock-jumps", "the clock jumps 30 s ahead at a restore", run=ClockJumps),
    Mutant("restore-clock-lost", "the clock starts from nothing after a restore", run=ClockLost),
    Mutant("restore-windows-lost", "open windows are empty after a restore", run=WindowsLost),
    Mutant("restore-counted-twice", "visits in open windows count twice after a restore", run=CountedTwice),
    Mutant("restore-too-far", "two records of a partition are skipped at a restore", run=ReadTooFar),
    Mutant(
        "restore-too-early", "two records of a partition are read again though the state has them", run=ReadTooEarly
    ),
    Mutant(
        "restore-positions-kept", "a restore continues where the job was killed, with the old state", run=PositionsKept
    ),
    Mutant("restore-state-kept", "a restore reads again, but the state is that of the kill", run=StateKept),
    Mutant(
        "restore-windows-kept", "windows written since the checkpoint are not rolled back", run=WindowsNotRolledBack
    ),
    Mutant("aborted-read", "records of aborted transactions are visible", run=AbortedRead),
    Mutant("windows-transaction-lost", "a restore loses a committed transaction of windows", run=TransactionLost),
    Mutant("late-transaction-lost", "a restore loses a committed transaction of late visits", run=LateTransactionLost),
    Mutant(
        "rejected-transaction-lost",
        "a restore loses a committed transaction of rejected records",
        run=RejectedTransactionLost,
    ),
    Mutant("committed-twice", "a restore commits the newest transaction a second time", run=CommittedTwice),
)
RECORDS = (
    Mutant("window-key-null", "a window has no key", spoil=change("windows", lambda r, _: r._replace(key=None))),
    Mutant("window-partition", "a window is in the wrong partition", spoil=change("windows", _other_partition)),
    Mutant(
        "window-timestamp", "a window has the record timestamp of its end",
        spoil=change("windows", lambda r, _: r._replace(timestamp=r.timestamp + 1)),
    ),
    Mutant("window-count", "a window has a visit more", spoil=change("windows", _counted_more)),
    Mutant(
        "window-name-twice", "a window has a name twice", spoil=change("windows", _json_replaced("{", '{"count": 1, '))
    ),
    Mutant(
        "window-microseconds", "a time has more digits than milliseconds",
        spoil=change("windows", _json_replaced('Z"', '000Z"')),
    ),
    Mutant("closing-window-missing", "a window of closing visits is missing", spoil=remove("windows", _closing)),
    Mutant("closing-window-again", "a window of closing visits is there again", spoil=repeat("windows", _closing)),
    Mutant("windows-out-of-order", "two windows of a key are the wrong way round", spoil=disorder("windows")),
    Mutant("late-out-of-order", "two late visits of one key change places", spoil=disorder("late")),
    Mutant("rejected-out-of-order", "two unparsable records of one key change places", spoil=disorder("rejected")),
    Mutant("drained", "open windows are written at the end of the job", run=Drained),
    Mutant("late-missing", "a late visit is missing", spoil=remove("late")),
    Mutant("late-again", "a late visit is there again", spoil=repeat("late")),
    Mutant(
        "late-value", "a late visit lost the last byte of its value",
        spoil=change("late", lambda r, _: r._replace(value=(r.value or b"")[:-1])),
    ),
    Mutant(
        "late-timestamp", "a late visit's timestamp is off by a millisecond",
        spoil=change("late", lambda r, _: r._replace(timestamp=r.timestamp + 1)),
    ),
    Mutant("late-offset", "a late visit names the offset of the record behind it", spoil=change("late", _next_offset)),
    Mutant(
        "late-reason", "a late visit has another reason",
        spoil=change("late", lambda r, _: _header(r, REASON_HEADER, b"window was over")),
    ),
    Mutant("late-reason-missing", "a late visit has no reason", spoil=change("late", _without(REASON_HEADER))),
    Mutant(
        "late-header-twice", "a late visit has its offset twice",
        spoil=change("late", lambda r, _: r._replace(headers=(*r.headers, r.headers[1]))),
    ),
    Mutant("rejected-missing", "an unparsable record is missing", spoil=remove("rejected")),
    Mutant(
        "rejected-reason", "an unparsable record has a reason that is not its own",
        spoil=change("rejected", lambda r, _: _header(r, REASON_HEADER, LATE_REASON.encode())),
    ),
)  # fmt: skip

MUTANTS = CLOCKS + WINDOWS + ROUTES + RESTORES + RECORDS
