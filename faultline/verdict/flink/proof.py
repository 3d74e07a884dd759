"""Finds the late visits that are late in every order of reading that makes the other decisions right.

A decision can require that some records are read before others. All requirements together give the records that every
order reads before a visit; if these alone move each partition past the visit's window, the visit is always late.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from faultline.verdict.flink.order import Decisions, Explanation, Group, Needs


@dataclass(frozen=True)
class _Demand:
    """Before `offset` of a partition is read, `other` is read up to `position`; `by`: the late group, or None."""

    offset: int
    other: int
    position: int
    by: Group | None


class _Forced:
    """For each record with a requirement: up to where every other partition is read before it, in every order."""

    def __init__(self, partitions: Iterable[int]) -> None:
        self._offsets: dict[int, list[int]] = {partition: [] for partition in partitions}
        self._vectors: dict[int, list[dict[int, int]]] = {partition: [] for partition in partitions}

    def add(self, partition: int, demand: _Demand) -> None:
        """Add a requirement, with the requirements of reading the other partition so far."""
        vector = dict(self.last(partition))
        behind = self._at(demand.other, demand.position - 1)
        for other, position in [*behind.items(), (demand.other, demand.position)]:
            if other != partition and position > vector.get(other, 0):
                vector[other] = position
        if vector != self.last(partition):
            self._offsets[partition].append(demand.offset)
            self._vectors[partition].append(vector)

    def _at(self, partition: int, offset: int) -> dict[int, int]:
        index = bisect_right(self._offsets[partition], offset)
        return self._vectors[partition][index - 1] if index else {}

    def last(self, partition: int) -> dict[int, int]:
        """Return what is read before the last record with a requirement so far."""
        return self._vectors[partition][-1] if self._vectors[partition] else {}


def proven(needs: Needs, decisions: Decisions, explanation: Explanation) -> set[Group]:
    """Find the groups whose first late visit is late in every order that makes the other decisions right."""
    queues = _demands(needs, decisions, explanation)
    heads = dict.fromkeys(needs.clocks, 0)
    forced = _Forced(needs.clocks)
    found: set[Group] = set()
    asked: set[Group] = set()
    moved = True
    while moved:
        moved = False
        for partition, queue in queues.items():
            while heads[partition] < len(queue):
                demand = queue[heads[partition]]
                other, ahead = queues[demand.other], heads[demand.other]
                read = other[ahead].offset if ahead < len(other) else needs.clocks[demand.other].end
                if read < demand.position:
                    break
                if demand.by is not None and demand.by not in asked:
                    asked.add(demand.by)
                    if _is_late_anyway(needs, demand, partition, forced.last(partition)):
                        found.add(demand.by)
                forced.add(partition, demand)
                heads[partition] += 1
                moved = True
    if len(needs.clocks) == 1:
        # No other partition can hold back the clock.
        found |= decisions.late.keys() - explanation.not_late
    return found


def _demands(needs: Needs, decisions: Decisions, explanation: Explanation) -> dict[int, list[_Demand]]:
    demands: dict[int, list[_Demand]] = defaultdict(list)
    for (partition, end), offset in decisions.late.items():
        if (partition, end) not in explanation.not_late:
            for other in needs.clocks:
                position = needs.read_before_late(other, end)
                if other != partition and position:
                    demands[partition].append(_Demand(offset, other, position, (partition, end)))
    for (partition, end), offset in decisions.passed.items():
        holders = needs.holders(partition, end)
        if (partition, end) not in explanation.not_on_time and holders is not None and len(holders) == 1:
            passes = needs.clocks[holders[0]].position_of(end) - 1
            demands[holders[0]].append(_Demand(passes, partition, offset + 1, None))
    return {p: sorted(demands[p], key=lambda demand: demand.offset) for p in needs.clocks}


def _is_late_anyway(needs: Needs, demand: _Demand, partition: int, before: dict[int, int]) -> bool:
    assert demand.by is not None
    _, end = demand.by
    return needs.clocks[partition].position_of(end) <= demand.offset and all(
        before.get(other, 0) >= clock.position_of(end) for other, clock in needs.clocks.items() if other != partition
    )
