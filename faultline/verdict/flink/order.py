"""Searches one order of reading that makes every decision right: late or on time depends on what was read before.

At a visit, the job's clock is the minimum of the partitions' clocks at the positions read so far. So
- at a late visit every partition was already past its window, and every on-time visit of that window or an earlier one
  was read;
- at a visit on time whose own partition is past its window, some other partition was not yet past it.

The search goes backwards: it begins with everything read and takes records back. A visit on time can be taken back once
some other partition is before its window; no partition goes back past a record that a late visit needs until that visit
is taken back. Both are conditions to wait for: taking back more never makes another step wrong. So steps in any order
find an order of reading if there is one, for any number of partitions.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from faultline.verdict.flink.clock import NEVER, PartitionClock

Group = tuple[int, int]
"""Partition and window end: within a group only the first late and the last on-time visit matter."""


@dataclass(frozen=True)
class Decisions:
    """The job's decisions, by group.

    `late`: offset of the first late visit. `on_time`: offset of the last visit on time, all groups;
    `passed`: the same among the visits whose own partition was past their window.
    """

    late: Mapping[Group, int]
    on_time: Mapping[Group, int]
    passed: Mapping[Group, int]


@dataclass
class Explanation:
    """The decisions that no order of reading explains."""

    not_late: set[Group] = field(default_factory=set)
    not_on_time: set[Group] = field(default_factory=set)


@dataclass(frozen=True, order=True)
class _Stop:
    """A record that the search has to check: the first late or the last on-time visit of a group."""

    offset: int
    late: bool
    end: int


class Needs:
    """Positions that the decisions require, partition by partition.

    Partitions p and p + `shared` have one clock in the job: it is not known which of these partitions moved the clock.
    """

    def __init__(self, clocks: Iterable[PartitionClock], decisions: Decisions, shared: int) -> None:
        self.clocks = {clock.partition: clock for clock in clocks}
        self._shared = shared
        sharers = itertools.groupby(sorted(self.clocks, key=lambda p: p % shared), key=lambda p: p % shared)
        self.alone = {ids[0] for _, found in sharers if len(ids := list(found)) == 1}
        self._on_time = {p: _Cumulative(groups, largest=True) for p, groups in self._by_partition(decisions.on_time)}
        self._late = {p: _Cumulative(groups, largest=False) for p, groups in self._by_partition(decisions.late)}

    def _by_partition(self, decided: Mapping[Group, int]) -> Iterable[tuple[int, list[tuple[int, int]]]]:
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (partition, end), offset in decided.items():
            found[partition].append((end, offset))
        return ((partition, found[partition]) for partition in self.clocks)

    def read_before_late(self, partition: int, end: int) -> int:
        """Return the earliest position of a partition when a visit of a window is late."""
        reached = self._reach(partition, end) if partition in self.alone else 0
        return max(reached, self._on_time[partition].up_to(end))

    def nobody_passes(self, end: int) -> bool:
        """Return whether no partition's clock ever passes a window."""
        return all(clock.position_of(end) == NEVER for clock in self.clocks.values())

    def holders(self, partition: int, end: int) -> list[int] | None:
        """Return the partitions that can have held the clock before a window; None: one can, at any time."""
        others = [other for other in self.clocks if other % self._shared != partition % self._shared]
        if any(other not in self.alone or self.clocks[other].position_of(end) == NEVER for other in others):
            return None
        return others

    def _reach(self, partition: int, end: int) -> int:
        """Return the first position at which a partition no longer holds the clock before a window's end."""
        clock = self.clocks[partition]
        reached = clock.position_of(end)
        if len(self.clocks) == 1:
            return reached
        # A pause at a position between the visits on time and the late ones.
        earliest, latest = self._on_time[partition].up_to(end), self._late[partition].since(end)
        index = bisect_left(clock.pauses, earliest)
        if index < len(clock.pauses) and clock.pauses[index] <= min(latest, reached - 1):
            return clock.pauses[index]
        return reached


class _Cumulative:
    """For one partition: the largest offset of all windows up to an end, or the smallest from an end on."""

    def __init__(self, groups: Iterable[tuple[int, int]], *, largest: bool) -> None:
        ordered = sorted((end if largest else -end, offset) for end, offset in groups)
        self._keys = [key for key, _ in ordered]
        extreme = max if largest else min
        self._offsets = list(itertools.accumulate((offset for _, offset in ordered), extreme))

    def up_to(self, end: int) -> int:
        """Position after the last offset of the windows that end at `end` or earlier; 0: none."""
        index = bisect_right(self._keys, end)
        return self._offsets[index - 1] + 1 if index else 0

    def since(self, end: int) -> int:
        """First offset of the windows that end at `end` or later; NEVER: none."""
        index = bisect_right(self._keys, -end)
        return self._offsets[index - 1] if index else NEVER


class _Search:
    def __init__(self, needs: Needs, decisions: Decisions) -> None:
        self._needs = needs
        self._decisions = decisions
        self._position = {partition: clock.end for partition, clock in needs.clocks.items()}
        self._stops: dict[int, list[_Stop]] = {partition: [] for partition in needs.clocks}
        self._holders: dict[Group, list[int] | None] = {}
        # Late groups that are not taken back, the newest window first.
        self._late: list[tuple[int, int, int]] = []
        self.found = Explanation()

    def run(self) -> Explanation:
        """Take everything back; decisions that are stuck have no explanation."""
        self._place_stops()
        while any(self._position.values()):
            if not any(self._go_back(partition) for partition in self._position):
                self._give_up()
        return self.found

    def _place_stops(self) -> None:
        for (partition, end), offset in self._decisions.late.items():
            if self._needs.nobody_passes(end) or any(
                self._needs.read_before_late(other, end) > (offset if other == partition else clock.end)
                for other, clock in self._needs.clocks.items()
            ):
                self.found.not_late.add((partition, end))
                continue
            heapq.heappush(self._late, (-end, partition, offset))
            self._stops[partition].append(_Stop(offset, True, end))
        for (partition, end), offset in self._decisions.passed.items():
            self._holders[partition, end] = self._needs.holders(partition, end)
            self._stops[partition].append(_Stop(offset, False, end))
        for stops in self._stops.values():
            stops.sort()

    def _go_back(self, partition: int) -> bool:
        """Take one partition back as far as possible now; return whether it moved."""
        begin, stops = self._position[partition], self._stops[partition]
        while True:
            newest = self._newest_late()
            floor = 0 if newest is None else self._needs.read_before_late(partition, newest)
            stop = stops[-1] if stops else None
            if stop and floor <= stop.offset and self._may_take_back(partition, stop):
                self._position[partition] = min(self._position[partition], stop.offset)
                stops.pop()
                continue
            target = max(floor, stop.offset + 1 if stop else 0)
            if target >= self._position[partition]:
                return self._position[partition] < begin
            self._position[partition] = target

    def _newest_late(self) -> int | None:
        """Return the newest window of the late visits that are not taken back yet."""
        while self._late:
            end, partition, offset = self._late[0]
            if offset < self._position[partition] and (partition, -end) not in self.found.not_late:
                return -end
            heapq.heappop(self._late)
        return None

    def _may_take_back(self, partition: int, stop: _Stop) -> bool:
        group = (partition, stop.end)
        if stop.late or group in self.found.not_on_time:
            return True
        holders = self._holders[group]
        clocks = self._needs.clocks
        return holders is None or any(self._position[q] < clocks[q].position_of(stop.end) for q in holders)

    def _give_up(self) -> None:
        """Mark one decision as without explanation, so that the others can be checked."""
        newest = self._newest_late()
        if newest is not None:
            self.found.not_late.add((self._late[0][1], newest))
            return
        partition, stop = next((partition, stops[-1]) for partition, stops in self._stops.items() if stops)
        self.found.not_on_time.add((partition, stop.end))


def explain(needs: Needs, decisions: Decisions) -> Explanation:
    """Search an order of reading that makes all decisions right."""
    return _Search(needs, decisions).run()
