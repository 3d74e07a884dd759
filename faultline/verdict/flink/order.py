"""Searches an order of reading that makes every decision right: late or on time depends on what was read before.

The model
    A job reads each partition in the order of its offsets, and the partitions in any order: an order of reading. A cut
    is one moment of it: the position of each partition, which is the offset that it reads next. A visit is decided at
    the cut before it is read: late when the job's clock has passed the end of its window, else on time.
    passes(q, w) is the first position at which partition q's own clock has passed window end w, NEVER if none. It does
    not fall as w grows.
    (a) The job's clock never goes back.
    (b) It has passed w only when some partition passes w, and each partition that is alone has come to passes(q, w),
        or to a pause at which it may have been idle while the others moved the clock past w.
    (c) It has passed w when each partition has come to passes(q, w).
    (d) The job has `shared` clocks: partitions p and p + shared have the same one, which each of them moves. A
        partition is alone when no other one has its clock.

Definitions
    A group is a partition and a window end. Its stops are its first late visit, and the last of its visits on time that
    came when their own partition had passed the window.
    reach(q, w) is passes(q, w), or the first pause before it that has no visit of q on time, of w or an earlier window,
    after it, and no late one of w or a later window before it. It is 0 when q is not alone.
    need(q, w) is the larger of reach(q, w) and the position after q's last visit on time of w or an earlier window.
    A holder for p is a partition that does not have p's clock. It holds w up to passes(q, w), or, when it is not alone,
    up to NEVER: which partition moves a clock with several is not known.

Lemma 1, needs: at a late visit of w, some partition passes w and each partition q has come to need(q, w).
    A visit on time of w or an earlier window was read before, by (a); so with (b) q has come to passes(q, w) or to a
    pause after these visits. When a late visit of w or a later window comes before that pause, it is itself before its
    need: it has no explanation, and the pause is not weighed.
Lemma 2, holders: at a visit of p on time that p's own clock has passed, some holder is before the end of its hold.
    Else each clock has passed the window, and the visit would be late by (c) and (d).
Lemma 3, stops: when the stops of a group meet Lemmas 1 and 2 in an order, all its visits do.
    Positions only grow: what the first late visit needs is there at later ones, and a holder that holds at the last
    visit on time holds at earlier ones.
Lemma 4, newest: need(q, w) does not fall as w grows, unless some late visit comes before its own need.
    Neither passes(q, w) nor the visits on time of w or earlier ones fall, so neither does the first pause after them.
    So the late visit of the newest window needs what all others need.
Lemma 5, exact: without pauses, and with each partition alone, an order whose stops meet Lemmas 1 and 2 makes exactly
    these decisions, and no other order does.
    Then reach is passes: at a late visit the job's clock has passed by (c), and at one on time it has not, by (b).
Lemma 6, backwards: begin with everything read, and take records back, each partition's last one first. A step is
    allowed when the cut to which it leads meets Lemma 1 for the late visits that were left, and Lemma 2 for a stop on
    time that it takes back. If some order meets the lemmas, each cut that allowed steps lead to has an allowed step,
    unless everything is taken back. So steps in any order find an order of reading, without going forward again, in
    linear time, for any number of partitions.
    Follow the order that meets the lemmas backwards, as long as no partition is behind the cut reached. The record that
    it takes back next is the last of its partition at the cut reached too. Holders are not further there, and late
    visits that are left there are left in that order too, so their needs are met: the step is allowed.
    Forwards, "some holder is before its end" would be a choice among holders, and a search would try all of them.
Lemma 7, jumps: a partition may go back in one step to its last stop, or to the need of the newest late visit.
    Other records have no condition of their own, and by Lemma 4 the newest late visit has the needs of all.
Lemma 8, stuck: where no step is allowed, no order meets the lemmas. When one of the decisions in the way is given up
    and the search goes on, the decisions that were not given up have an order that meets the lemmas.
    The first is Lemma 6. Without one condition the steps before are still allowed, and all steps, read from the end,
    are the order.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from faultline.verdict.flink.clock import NEVER, PartitionClock

Group = tuple[int, int]
"""Partition and window end: within a group only the first late and the last on-time visit matter (Lemma 3)."""


@dataclass(frozen=True)
class Decisions:
    """The job's decisions, by group (Lemma 3).

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


def alone(partitions: Iterable[int], shared: int) -> set[int]:
    """Return the partitions with a clock of their own in the job, which has `shared` clocks."""
    listed = list(partitions)
    sharers = Counter(partition % shared for partition in listed)
    return {partition for partition in listed if sharers[partition % shared] == 1}


class Needs:
    """Positions that the decisions require, partition by partition; partitions p and p + `shared` have one clock.

    `fewest`: the fewest clocks that the job had, if it had fewer once: who shared a clock then need not be alone.
    """

    def __init__(
        self, clocks: Iterable[PartitionClock], decisions: Decisions, shared: int, fewest: int | None = None
    ) -> None:
        self.clocks = {clock.partition: clock for clock in clocks}
        self.holders = {p: [q for q in self.clocks if q % shared != p % shared] for p in self.clocks}
        """For each partition, those that do not have its clock."""
        self._alone = alone(self.clocks, shared if fewest is None else fewest)
        self._on_time = self._by_window(decisions.on_time)
        self._late = self._by_window(decisions.late)

    def _by_window(self, decided: Mapping[Group, int]) -> dict[int, _ByWindow]:
        found: dict[int, list[tuple[int, int]]] = {partition: [] for partition in self.clocks}
        for (partition, end), offset in decided.items():
            found[partition].append((end, offset))
        return {partition: _ByWindow(groups) for partition, groups in found.items()}

    def need(self, partition: int, end: int) -> int:
        """Return the earliest position of a partition when a visit of a window is late (Lemma 1)."""
        read = self._on_time[partition].position_after(end)
        return max(read, self._reach(partition, end, read)) if partition in self._alone else read

    def can_be_late(self, group: Group, offset: int) -> bool:
        """Return whether a visit can be late in any order: Lemma 1 at the last cut at which it can be decided."""
        partition, end = group
        return any(clock.position_of(end) < NEVER for clock in self.clocks.values()) and all(
            self.need(other, end) <= (offset if other == partition else clock.end)
            for other, clock in self.clocks.items()
        )

    def held_up_to(self, holder: int, end: int) -> int:
        """Return the position at which a holder no longer holds the clock before a window; NEVER: none (Lemma 2)."""
        return self.clocks[holder].position_of(end) if holder in self._alone else NEVER

    def _reach(self, partition: int, end: int, read: int) -> int:
        """Return reach(q, w) of a partition that is alone; `read`: the position after its visits on time up to w."""
        clock = self.clocks[partition]
        passes = clock.position_of(end)
        if len(self.clocks) == 1:
            return passes
        index = bisect_left(clock.pauses, read)
        latest = min(self._late[partition].first_since(end), passes - 1)
        if index < len(clock.pauses) and clock.pauses[index] <= latest:
            return clock.pauses[index]
        return passes


class _ByWindow:
    """Offsets of one partition's groups, by window end."""

    def __init__(self, groups: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(groups)
        offsets = [offset for _, offset in ordered]
        self._ends = [end for end, _ in ordered]
        self._largest = list(itertools.accumulate(offsets, max))
        self._smallest = list(itertools.accumulate(reversed(offsets), min))[::-1]

    def position_after(self, end: int) -> int:
        """Return the position after the last offset of the windows that end at `end` or earlier; 0: none."""
        index = bisect_right(self._ends, end)
        return self._largest[index - 1] + 1 if index else 0

    def first_since(self, end: int) -> int:
        """Return the first offset of the windows that end at `end` or later; NEVER: none."""
        index = bisect_left(self._ends, end)
        return self._smallest[index] if index < len(self._ends) else NEVER


@dataclass(frozen=True, order=True)
class _Stop:
    """One stop of a group."""

    offset: int
    end: int
    late: bool


class _Search:
    """The search of Lemma 6: positions go back from the end to 0."""

    def __init__(self, needs: Needs, decisions: Decisions) -> None:
        self._needs = needs
        self._position = {partition: clock.end for partition, clock in needs.clocks.items()}
        self._stops: dict[int, list[_Stop]] = {partition: [] for partition in needs.clocks}
        self._found = Explanation()
        late: list[tuple[int, int, int]] = []
        for (partition, end), offset in decisions.late.items():
            if needs.can_be_late((partition, end), offset):
                late.append((-end, partition, offset))
                self._stops[partition].append(_Stop(offset, end, late=True))
            else:
                self._found.not_late.add((partition, end))
        for (partition, end), offset in decisions.passed.items():
            self._stops[partition].append(_Stop(offset, end, late=False))
        for stops in self._stops.values():
            stops.sort()
        # The newest window last.
        self._late = sorted(late, reverse=True)

    def run(self) -> Explanation:
        """Take everything back; decisions that are stuck have no explanation (Lemmas 6 and 8)."""
        while any(self._position.values()):
            if not any(self._go_back(partition) for partition in self._position):
                self._give_up()
        return self._found

    def _go_back(self, partition: int) -> bool:
        """Take one partition back as far as possible now; return whether it moved (Lemma 7)."""
        begin, stops = self._position[partition], self._stops[partition]
        while stops and self._floor(partition) <= stops[-1].offset and self._is_right(partition, stops[-1]):
            self._position[partition] = stops.pop().offset
        last = stops[-1].offset + 1 if stops else 0
        self._position[partition] = min(self._position[partition], max(self._floor(partition), last))
        return self._position[partition] < begin

    def _floor(self, partition: int) -> int:
        """Return the position of a partition that the late visits still need: the newest has all needs (Lemma 4)."""
        newest = self._newest_late()
        return 0 if newest is None else self._needs.need(partition, newest)

    def _newest_late(self) -> int | None:
        """Return the newest window of the late visits that are not taken back yet."""
        while self._late:
            end, partition, offset = self._late[-1]
            if offset < self._position[partition]:
                return -end
            self._late.pop()
        return None

    def _is_right(self, partition: int, stop: _Stop) -> bool:
        """Return whether a stop may be taken back: at the floor a late one meets Lemma 1, one on time needs Lemma 2."""
        return stop.late or any(
            self._position[holder] < self._needs.held_up_to(holder, stop.end)
            for holder in self._needs.holders[partition]
        )

    def _give_up(self) -> None:
        """Mark one decision as without explanation, so that the others can be checked (Lemma 8)."""
        if self._newest_late() is not None:
            end, partition, _ = self._late.pop()
            self._found.not_late.add((partition, -end))
            return
        partition, stops = next((partition, stops) for partition, stops in self._stops.items() if stops)
        self._found.not_on_time.add((partition, stops.pop().end))


def explain(needs: Needs, decisions: Decisions) -> Explanation:
    """Search an order of reading that makes all decisions right."""
    return _Search(needs, decisions).run()
