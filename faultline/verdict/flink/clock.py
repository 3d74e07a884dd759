"""The event-time clock that follows from the source: one for each partition, updated record by record.

A visit moves the clock of its partition to the largest event time so far, minus the out-of-orderness bound. It does not
depend on how the job computes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

_BEFORE_ALL = -(2**62)

PASSED = pa.schema([("kafka_partition", pa.int32()), ("kafka_offset", pa.int64()), ("window_end", pa.int64())])
"""Rows of `passed`: visits that come when the clock of their own partition has already passed their window."""

Arrivals = Callable[[int, int, int], pa.Table]
"""Partition, first and last offset -> columns `kafka_offset` and `clock` (milliseconds), where known."""


@dataclass(frozen=True)
class Rules:
    """Length of a window, out-of-orderness bound, and the pause after which a partition may be idle, in ms."""

    window_ms: int
    bound_ms: int
    pause_ms: int


@dataclass
class PartitionClock:
    """The clock of one partition. A position is the offset that is read next."""

    partition: int
    ends: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Window ends that the clock passes, ascending, and the position from which each is passed."""
    pauses: list[int] = field(default_factory=list)
    """Positions where no visit arrived for so long that the partition may have been idle."""
    first_visit: int | None = None
    """Offset of the first visit."""
    first_arrival: int = _BEFORE_ALL
    _top: int = _BEFORE_ALL
    _arrived: int = _BEFORE_ALL
    behind: list[int] = field(default_factory=list)
    """Offsets of the visits since the newest, all with earlier event times."""

    def passed_at(self, position: int) -> int | None:
        """Return the last window end that the clock has passed at a position, or None."""
        index = bisect_right(self.positions, position)
        return self.ends[index - 1] if index else None

    def follow(self, rows: pa.Table, rules: Rules, arrivals: Arrivals | None) -> pa.Table:
        """Read the next rows of this partition (table `visits`); return those that come after their window (PASSED)."""
        visits = rows.filter(pc.is_valid(rows["event_time"])).combine_chunks()
        if not visits.num_rows:
            return PASSED.empty_table()
        offsets = _array(visits, "kafka_offset")
        tops = pc.cumulative_max(_array(visits, "event_time"), start=self._top)
        before = _shifted(tops, self._top)
        self._step(offsets, tops, rules)
        self._pause(offsets, _arrived(self.partition, visits, offsets, arrivals), rules)
        self._top = tops[-1].as_py()
        passed = pc.greater_equal(pc.subtract(before, rules.bound_ms), _array(visits, "window_end"))
        return visits.select(PASSED.names).filter(passed)

    def _step(self, offsets: pa.Array, tops: pa.Array, rules: Rules) -> None:
        """Record where the clock passes the end of a window."""
        reached = pc.max_element_wise(pc.subtract(tops, rules.bound_ms), 0)
        closed = pc.multiply(pc.divide(reached, rules.window_ms), rules.window_ms)
        moved = pc.greater(closed, _shifted(closed, self.ends[-1] if self.ends else 0))
        self.ends += closed.filter(moved).to_pylist()
        self.positions += pc.add(offsets.filter(moved), 1).to_pylist()

    def _pause(self, offsets: pa.Array, arrived: pa.Array, rules: Rules) -> None:
        """Record where no visits arrive for a long time.

        The event time of a visit behind the newest does not show when it came: a pause may be before or after it.
        """
        if self.first_visit is None:
            self.first_visit, self.first_arrival = offsets[0].as_py(), arrived[0].as_py()
            self._arrived = self.first_arrival
        newest = pc.cumulative_max(arrived, start=self._arrived)
        gaps = pc.subtract(newest, _shifted(newest, self._arrived))
        is_behind = pc.less(arrived, newest)
        long_gaps = pc.indices_nonzero(pc.greater_equal(gaps, rules.pause_ms)).to_pylist()
        for index in long_gaps:
            self.pauses += [*self._run_behind(offsets, is_behind, index), offsets[index].as_py()]
        self.behind = self._run_behind(offsets, is_behind, len(offsets))
        self._arrived = newest[-1].as_py()

    def _run_behind(self, offsets: pa.Array, is_behind: pa.Array, end: int) -> list[int]:
        """Return the offsets of the visits behind the newest that come directly before an index, in order."""
        begin = end
        while begin and is_behind[begin - 1].as_py():
            begin -= 1
        run: list[int] = offsets[begin:end].to_pylist()
        return [*self.behind, *run] if begin == 0 else run


def finish(clocks: list[PartitionClock], rules: Rules) -> None:
    """Record the pauses at both ends, once every partition is read."""
    arrivals = [clock.first_arrival for clock in clocks if clock.first_visit is not None]
    for clock in clocks:
        if clock.first_visit is not None and clock.first_arrival - min(arrivals) >= rules.pause_ms:
            clock.pauses.insert(0, clock.first_visit)
        clock.pauses += clock.behind


def _array(rows: pa.Table, column: str) -> pa.Array:
    return rows[column].combine_chunks() if isinstance(rows[column], pa.ChunkedArray) else rows[column]


def _shifted(values: pa.Array, first: int) -> pa.Array:
    """Shift values by one place; `first` comes before them."""
    return pa.concat_arrays([pa.array([first], values.type), values[:-1]])


def _arrived(partition: int, visits: pa.Table, offsets: pa.Array, arrivals: Arrivals | None) -> pa.Array:
    """Return when each visit arrived: by the ledger if it has the visit, else by its timestamp.

    A timestamp may be an event time that is ahead of the ledger's clock, so it counts as between its neighbours there.
    """
    timestamps = _array(visits, "timestamp")
    if arrivals is None:
        return timestamps
    known = arrivals(partition, offsets[0].as_py(), offsets[-1].as_py())
    found = pc.index_in(offsets, value_set=_array(known, "kafka_offset"))
    clock = _array(known, "clock").take(found)
    return pc.max_element_wise(
        pc.fill_null_forward(clock), pc.min_element_wise(timestamps, pc.fill_null_backward(clock))
    )
