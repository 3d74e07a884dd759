"""A trial of every order of reading: could a faultless windowing job have made these decisions? Small sources only.

Independent of the judge: the positions reached so far say what the clock is, so all that matters about an order is
which positions it goes through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from faultline.formats.visit import (
    LATE_REASON,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    parse_visit,
    refusal_reasons,
)
from faultline.verdict.records import Record
from tests.judge.flink_world import BOUND_MS, WINDOW_MS, Outputs, Source, routed_record, window_record
from tests.judge.windows_runs import TOPICS, Transaction, published

Place = tuple[int, int]
"""Partition and offset of a record."""


def late_places(outputs: Outputs) -> set[Place]:
    """Give the records that the late topic names."""
    headers = [dict(record.headers) for record in outputs.late]
    return {(int(h[SOURCE_PARTITION_HEADER] or b""), int(h[SOURCE_OFFSET_HEADER] or b"")) for h in headers}


def window_end(record: Record) -> int | None:
    """Give the end of a visit's window; None for an unparsable record."""
    visit = parse_visit(record.value)
    return None if visit is None else visit.event_time - visit.event_time % WINDOW_MS + WINDOW_MS


class Orders:
    """All orders in which a source can be read. No partition counts as idle."""

    def __init__(self, source: Source) -> None:
        self._partitions = sorted(source)
        self._ends = [[window_end(record) for record in source[partition]] for partition in self._partitions]
        self._closed = [self._closed_at(source[partition]) for partition in self._partitions]

    @staticmethod
    def _closed_at(records: list[Record]) -> list[int]:
        """Give up to where the clock of one partition closes the windows, by position."""
        closed = [0]
        for record in records:
            visit = parse_visit(record.value)
            now = 0 if visit is None else visit.event_time - BOUND_MS
            closed.append(max(closed[-1], now - now % WINDOW_MS))
        return closed

    def closed(self, positions: tuple[int, ...]) -> int:
        """Give up to where the job's clock has closed the windows, whatever the order so far."""
        return min(closed[position] for closed, position in zip(self._closed, positions, strict=True))

    def late_in(self, order: Iterable[int]) -> set[Place]:
        """Give the visits that are late when the partitions are read in this order, then one after the other."""
        positions, late = [0] * len(self._partitions), set()
        rest = [index for index, ends in enumerate(self._ends) for _ in ends]
        for index in [*(number % len(positions) for number in order), *rest]:
            if positions[index] == len(self._ends[index]):
                continue
            end = self._ends[index][positions[index]]
            if end is not None and end <= self.closed(tuple(positions)):
                late.add((self._partitions[index], positions[index]))
            positions[index] += 1
        return late

    def explain(self, late: set[Place]) -> bool:
        """Say whether some order makes exactly these visits late."""
        # From the end backwards: there the first path is seldom a dead end.
        end = tuple(len(ends) for ends in self._ends)
        seen, waiting = {end}, [end]
        while waiting:
            positions = waiting.pop()
            if not any(positions):
                return True
            for index, partition in enumerate(self._partitions):
                if not positions[index]:
                    continue
                offset = positions[index] - 1
                before = (*positions[:index], offset, *positions[index + 1 :])
                window = self._ends[index][offset]
                right = window is None or (window <= self.closed(before)) == ((partition, offset) in late)
                if right and before not in seen:
                    seen.add(before)
                    waiting.append(before)
        return False

    def last_closed(self) -> int:
        """Give up to where windows are closed once everything is read."""
        return self.closed(tuple(len(ends) for ends in self._ends))


def outputs_of(source: Source, late: set[Place], closed: int) -> Outputs:
    """Write what a job writes that sets exactly these visits aside and closes the windows up to `closed`."""
    outputs = Outputs()
    windows: dict[tuple[int, str], list[int]] = {}
    for record in (record for records in source.values() for record in records):
        visit, end = parse_visit(record.value), window_end(record)
        if visit is None or end is None:
            outputs.rejected.append(routed_record(record, refusal_reasons(record.value)[0]))
        elif (record.partition, record.offset) in late:
            outputs.late.append(routed_record(record, LATE_REASON))
        elif end <= closed:
            windows.setdefault((end, visit.visit_id), []).append(visit.event_time)
    outputs.windows = [window_record(visit_id, end, times) for (end, visit_id), times in sorted(windows.items())]
    return published([Transaction(outputs, set(TOPICS))])


def content(outputs: Outputs) -> object:
    """Give what the topics hold, except what is not promised: order between keys, the partition without a key."""
    ordered: dict[object, list[Record]] = defaultdict(list)
    for record in sorted(outputs.windows, key=lambda record: (record.partition, record.offset)):
        ordered[record.partition, record.key].append(record._replace(offset=0))
    free = []
    for name, records in (("late", outputs.late), ("rejected", outputs.rejected)):
        for record in sorted(records, key=lambda record: (record.partition, record.offset)):
            if record.key is None:
                free.append(name + repr(record._replace(partition=0, offset=0)))
            else:
                origin = dict(record.headers)[SOURCE_PARTITION_HEADER]
                ordered[name, origin, record.partition, record.key].append(record._replace(offset=0))
    return ordered, sorted(free)


def could_be_faultless(source: Source, outputs: Outputs) -> bool:
    """Say whether a faultless job writes this in some order of reading."""
    orders, late = Orders(source), late_places(outputs)
    return content(outputs) == content(outputs_of(source, late, orders.last_closed())) and orders.explain(late)
