"""Finds the late visits that are late in every order of reading that makes the other decisions right.

The model, the definitions and Lemmas 1 to 8 are those of `faultline.verdict.flink.order`. "Every order" here means:
every order that meets Lemmas 1 and 2 for all decisions that the search has explained.

Definitions
    A demand of a record on partition q is a position: before the record is read, q has come to it.
    forced(r) has the largest position of each other partition that follows from demands: from those of r, from those
    of earlier records of its partition, and, for a position of q, from what is forced for q's record before it.

Lemma 9, demands: in every order, the first late visit of w demands need(q, w) of each other partition q. When a visit
    of p on time, that p's own clock has passed, has one holder only, the record with which that holder passes the
    window demands the position after that visit.
    These are Lemmas 1 and 2. With several holders any one of them can have held the clock: nothing is demanded.
Lemma 10, forced: in every order each partition has come to forced(r) before r is read.
    A partition is read in the order of its offsets, and a record that is read before an earlier one is read before r.
Lemma 11, late anyway: a late visit is late in every order that makes the other decisions right, when its own partition
    has passed its window, and the positions forced without its own demands bring each other one to where it passes.
    By (c): its own decision is not used. A visit that demands nothing is asked only when it has no other partition.
Lemma 12, in turn: the records with demands can be taken one by one, each after those that its demands are about.
    By Lemma 8 the explained decisions have an order, and it meets all demands. So a pass over them comes to the end,
    and when a record is taken, what is known does not depend on its own demands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from faultline.verdict.flink.clock import NEVER
from faultline.verdict.flink.order import Decisions, Explanation, Group, Needs


@dataclass(frozen=True)
class Demands:
    """Positions of other partitions that are read before a record of `partition`; `late`: its late group, or None."""

    partition: int
    offset: int
    positions: Mapping[int, int]
    late: Group | None


class Forced:
    """For each record with demands: up to where every other partition is read before it, in every order (Lemma 10)."""

    def __init__(self, partitions: Iterable[int]) -> None:
        self._offsets: dict[int, list[int]] = {partition: [] for partition in partitions}
        self._positions: dict[int, list[dict[int, int]]] = {partition: [] for partition in self._offsets}

    def add(self, demands: Demands) -> None:
        """Add what a record demands, and what is forced for the records that its demands are about."""
        positions = dict(self.before(demands.partition, NEVER))
        for other, demanded in demands.positions.items():
            for partition, position in [*self.before(other, demanded).items(), (other, demanded)]:
                if partition != demands.partition:
                    positions[partition] = max(positions.get(partition, 0), position)
        self._offsets[demands.partition].append(demands.offset)
        self._positions[demands.partition].append(positions)

    def before(self, partition: int, position: int) -> Mapping[int, int]:
        """Return what is forced, by the demands added so far, for the last record before a position."""
        index = bisect_right(self._offsets[partition], position - 1)
        return self._positions[partition][index - 1] if index else {}


def proven(needs: Needs, decisions: Decisions, explanation: Explanation) -> set[Group]:
    """Find the groups whose first late visit is late in every order that makes the other decisions right."""
    forced, found = Forced(needs.clocks), set[Group]()
    for demands in in_turn(demands_of(needs, decisions, explanation)):
        if demands.late is not None and _is_late_anyway(needs, demands, demands.late[1], forced):
            found.add(demands.late)
        forced.add(demands)
    return found


def demands_of(needs: Needs, decisions: Decisions, explanation: Explanation) -> dict[int, list[Demands]]:
    """Return the demands of each partition's records, in the order of their offsets (Lemma 9)."""
    found: dict[int, list[Demands]] = {partition: [] for partition in needs.clocks}
    for (partition, end), offset in decisions.late.items():
        positions = {q: need for q in needs.clocks if q != partition and (need := needs.need(q, end))}
        if (partition, end) not in explanation.not_late and (positions or len(needs.clocks) == 1):
            found[partition].append(Demands(partition, offset, positions, late=(partition, end)))
    for (partition, end), offset in decisions.passed.items():
        holders = needs.holders[partition]
        if (partition, end) not in explanation.not_on_time and len(holders) == 1:
            [holder] = holders
            if (position := needs.held_up_to(holder, end)) < NEVER:
                found[holder].append(Demands(holder, position - 1, {partition: offset + 1}, late=None))
    return {partition: sorted(demands, key=lambda each: each.offset) for partition, demands in found.items()}


def in_turn(queues: Mapping[int, list[Demands]]) -> Iterator[Demands]:
    """Yield all demands, each after those of the records that it is about (Lemma 12)."""
    taken = dict.fromkeys(queues, 0)

    def is_next(demands: Demands) -> bool:
        return all(
            taken[other] == len(queues[other]) or queues[other][taken[other]].offset >= position
            for other, position in demands.positions.items()
        )

    moved = True
    while moved:
        moved = False
        for partition, queue in queues.items():
            while taken[partition] < len(queue) and is_next(queue[taken[partition]]):
                yield queue[taken[partition]]
                taken[partition] += 1
                moved = True


def _is_late_anyway(needs: Needs, demands: Demands, end: int, forced: Forced) -> bool:
    """Return whether a late visit, whose own demands are not added yet, is late in every order (Lemma 11)."""
    read = {**forced.before(demands.partition, NEVER), demands.partition: demands.offset}
    return all(read.get(partition, 0) >= clock.position_of(end) for partition, clock in needs.clocks.items())
