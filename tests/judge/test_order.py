"""The lemmas of the search for an order of reading, and of the proofs from it: one test for each, on drawn worlds."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from faultline.verdict.flink.clock import NEVER, PartitionClock
from faultline.verdict.flink.order import Decisions, Explanation, Group, Needs, explain
from faultline.verdict.flink.proof import Forced, demands_of, in_turn, proven
from faultline.verdict.flink.reader import visit_rows
from faultline.verdict.records import batch_of
from tests.judge.flink_world import BOUND_MS, RULES, START, WINDOW_MS, Source, add_visit
from tests.tiers import seeds

Decided = frozenset[tuple[int, int]]
"""The visits that were called late: partition and offset. All others were on time."""
Cut = dict[int, int]
"""The position of each partition."""


def small_source(chance: random.Random, partitions: int, records: int) -> Source:
    """Draw a few visits whose times are close to where decisions change."""
    times = [0, WINDOW_MS, WINDOW_MS + BOUND_MS - 1, WINDOW_MS + BOUND_MS, 2 * WINDOW_MS + BOUND_MS, 4 * WINDOW_MS]
    source: Source = {partition: [] for partition in range(partitions)}
    for number in range(records):
        add_visit(source, number % partitions, "a", START + chance.choice(times))
    return source


@dataclass
class World:
    """A source, the clocks of its partitions as the judge follows them, and the number of clocks in the job."""

    source: Source
    clocks: dict[int, PartitionClock]
    shared: int

    def visits(self) -> Iterator[tuple[int, int, int]]:
        """Yield partition, offset and window end of each visit."""
        for partition, records in self.source.items():
            for offset, record in enumerate(records):
                yield partition, offset, record.timestamp - record.timestamp % WINDOW_MS + WINDOW_MS

    def ends(self) -> dict[tuple[int, int], int]:
        """Return the window end of each visit."""
        return {(partition, offset): end for partition, offset, end in self.visits()}

    def has_passed(self, partition: int, position: int, end: int) -> bool:
        """Return whether a partition's own clock has passed a window."""
        return self.clocks[partition].position_of(end) <= position

    def cuts(self, order: Iterable[int]) -> Iterator[tuple[int, Cut]]:
        """Yield which partition is read next, and the cut before."""
        cut = dict.fromkeys(self.source, 0)
        for partition in order:
            yield partition, dict(cut)
            cut[partition] += 1

    def decide(self, order: Iterable[int], chance: random.Random | None = None) -> Decided:
        """Let a job read in this order; return what it calls late. With a chance, partitions are idle at some pauses.

        The clock of an idle partition follows the others.
        """
        job = dict.fromkeys((partition % self.shared for partition in self.source), 0)
        ends = self.ends()
        late = set()
        for partition, cut in self.cuts(order):
            for idle in self.source:
                others = [at for number, at in job.items() if number != idle % self.shared]
                if chance and cut[idle] in self.clocks[idle].pauses and others and chance.random() < 0.5:
                    job[idle] = max(job[idle], min(others))
            if ends[partition, cut[partition]] <= min(job.values()):
                late.add((partition, cut[partition]))
            passed = self.clocks[partition].passed_at(cut[partition] + 1) or 0
            job[partition % self.shared] = max(job[partition % self.shared], passed)
        return frozenset(late)

    def decisions(self, late: Decided) -> Decisions:
        """Return the decisions as the judge takes them from its tables."""
        called: dict[Group, int] = {}
        on_time: dict[Group, int] = {}
        passed: dict[Group, int] = {}
        for partition, offset, end in self.visits():
            if (partition, offset) in late:
                called.setdefault((partition, end), offset)
                continue
            on_time[partition, end] = offset
            if self.has_passed(partition, offset, end):
                passed[partition, end] = offset
        return Decisions(called, on_time, passed)

    def needs(self, decisions: Decisions) -> Needs:
        """Return what the decisions need."""
        return Needs(self.clocks.values(), decisions, self.shared)


def drawn_world(chance: random.Random, partitions: int, *, records: int = 7, ideal: bool = False) -> World:
    """Draw a world; an ideal one has no pauses, and each partition has a clock of its own."""
    source = small_source(chance, partitions, records)
    shared = partitions if ideal else chance.choice([partitions, partitions, chance.randint(1, partitions)])
    clocks = {}
    for partition, listed in source.items():
        clock = clocks[partition] = PartitionClock(partition)
        clock.follow(pa.Table.from_batches([visit_rows(batch_of(listed), WINDOW_MS)]), RULES, None)
        pauses = () if ideal or shared < partitions else chance.choices(range(len(listed) + 1), k=chance.randint(0, 2))
        clock.pauses[:] = sorted(set(pauses))
    return World(source, clocks, shared)


def drawn_order(chance: random.Random, world: World) -> list[int]:
    order = [partition for partition, records in world.source.items() for _ in records]
    chance.shuffle(order)
    return order


def drawn_wrong(chance: random.Random, world: World, late: Decided) -> Decided:
    """Change up to two decisions."""
    places = [(partition, offset) for partition, offset, _ in world.visits()]
    return late ^ frozenset(chance.choices(places, k=chance.randint(0, 2)))


def all_orders(world: World) -> set[tuple[int, ...]]:
    return set(itertools.permutations(partition for partition, records in world.source.items() for _ in records))


def is_met(world: World, needs: Needs, cut: Cut, end: int, partition: int, *, late: bool) -> bool:
    """Return whether a cut meets Lemma 1 for a late visit, or Lemma 2 for one on time, as they are written."""
    if late:
        passes = any(clock.position_of(end) < NEVER for clock in world.clocks.values())
        return passes and all(cut[other] >= needs.need(other, end) for other in cut)
    if not world.has_passed(partition, cut[partition], end):
        return True
    return any(cut[other] < needs.held_up_to(other, end) for other in needs.holders[partition])


def defined_need(world: World, decisions: Decisions, partition: int, end: int) -> int:
    """Return need(q, w) by its definition."""
    clock = world.clocks[partition]
    on_time = [offset + 1 for (p, other), offset in decisions.on_time.items() if p == partition and other <= end]
    late = [offset for (p, other), offset in decisions.late.items() if p == partition and other >= end]
    read, passes = max(on_time, default=0), clock.position_of(end)
    pause = next((pause for pause in clock.pauses if pause >= read), NEVER)
    weighed = len(world.clocks) > 1 and pause < passes and pause <= min(late, default=NEVER)
    if any(other != partition and other % world.shared == partition % world.shared for other in world.clocks):
        return read
    return max(read, pause if weighed else passes)


def unmet(world: World, late: Decided, order: Iterable[int]) -> Decided:
    """Return the visits that do not meet Lemmas 1 and 2 in an order."""
    needs = world.needs(world.decisions(late))
    ends = world.ends()
    found = set()
    for partition, cut in world.cuts(order):
        visit = (partition, cut[partition])
        if not is_met(world, needs, cut, ends[visit], partition, late=visit in late):
            found.add(visit)
    return frozenset(found)


def stops_of(decisions: Decisions) -> set[tuple[int, int]]:
    found = [*decisions.late.items(), *decisions.passed.items()]
    return {(partition, offset) for (partition, _), offset in found}


worlds = pytest.mark.parametrize(
    ("seed", "partitions"), [(seed, partitions) for seed in seeds(60) for partitions in (1, 2, 3, 4)]
)
few_worlds = pytest.mark.parametrize(
    ("seed", "partitions"), [(seed, partitions) for seed in seeds(20) for partitions in (1, 2, 3, 4)]
)


@worlds
def test_lemma_1_needs(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    order = drawn_order(chance, world)
    late = world.decide(order, chance)
    decisions = world.decisions(late)
    assert not unmet(world, late, order) & late
    needs = world.needs(decisions)
    assert all(needs.can_be_late(group, offset) for group, offset in decisions.late.items())
    for partition, _, end in world.visits():
        assert needs.need(partition, end) == defined_need(world, decisions, partition, end)


@worlds
def test_lemma_2_holders(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    order = drawn_order(chance, world)
    late = world.decide(order, chance)
    assert unmet(world, late, order) <= late


@worlds
def test_lemma_3_stops(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    order = drawn_order(chance, world)
    late = drawn_wrong(chance, world, world.decide(order, chance))
    decisions = world.decisions(late)
    wrong, stops = unmet(world, late, order), stops_of(decisions)
    ends = world.ends()
    for partition, offset in wrong:
        called = decisions.late if (partition, offset) in late else decisions.passed
        stop = called[partition, ends[partition, offset]]
        assert (partition, stop) in wrong & stops


@worlds
def test_lemma_4_newest(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    decisions = world.decisions(drawn_wrong(chance, world, world.decide(drawn_order(chance, world), chance)))
    needs = world.needs(decisions)
    if any(needs.need(partition, end) > offset for (partition, end), offset in decisions.late.items()):
        return
    ends = range(START, START + 6 * WINDOW_MS, WINDOW_MS)
    for partition in world.source:
        positions = [needs.need(partition, end) for end in ends]
        assert positions == sorted(positions)


@few_worlds
def test_lemma_5_exact(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions, ideal=True)
    for order in (drawn_order(chance, world) for _ in range(8)):
        late = world.decide(order)
        assert not unmet(world, late, order)
        other = drawn_wrong(chance, world, late)
        stops = stops_of(world.decisions(other))
        assert bool(unmet(world, other, order) & stops) == (other != late)


def go_back(chance: random.Random, world: World, late: Decided) -> Cut:
    """Take records back one by one, in any order that Lemma 6 allows, and return the cut where no step is allowed."""
    decisions = world.decisions(late)
    needs, stops = world.needs(decisions), stops_of(decisions)
    ends = world.ends()
    cut = {partition: len(records) for partition, records in world.source.items()}
    while True:
        allowed = []
        for partition in (each for each in cut if cut[each]):
            left = [ends[p, o] for p, o in stops & late if o < cut[p]]
            to = {**cut, partition: cut[partition] - 1}
            taken = (partition, to[partition])
            held = taken in late or taken not in stops or is_met(world, needs, to, ends[taken], partition, late=False)
            if held and all(is_met(world, needs, to, end, partition, late=True) for end in left):
                allowed.append(to)
        if not allowed:
            return cut
        cut = chance.choice(allowed)


@few_worlds
def test_lemma_6_backwards(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    late = world.decide(drawn_order(chance, world), chance)
    for _ in range(4):
        assert not any(go_back(chance, world, late).values())


@few_worlds
def test_lemma_7_jumps(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    for _ in range(4):
        late = drawn_wrong(chance, world, world.decide(drawn_order(chance, world), chance))
        decisions = world.decisions(late)
        assert is_explained(explain(world.needs(decisions), decisions)) != any(go_back(chance, world, late).values())


def is_explained(found: Explanation) -> bool:
    return not found.not_late and not found.not_on_time


def search(world: World, late: Decided) -> tuple[Explanation, set[Group]]:
    decisions = world.decisions(late)
    needs = world.needs(decisions)
    explanation = explain(needs, decisions)
    return explanation, proven(needs, decisions, explanation)


@pytest.mark.parametrize(("partitions", "records"), [(1, 6), (2, 7), (3, 7), (4, 7)])
@pytest.mark.parametrize("seed", seeds(20))
def test_lemma_8_stuck(seed: int, partitions: int, records: int) -> None:
    world = drawn_world(random.Random(seed), partitions, records=records, ideal=True)
    possible = {world.decide(order) for order in all_orders(world)}
    visits = list(world.visits())
    for called in itertools.product([False, True], repeat=len(visits)):
        late = frozenset((p, offset) for (p, offset, _), is_late in zip(visits, called, strict=True) if is_late)
        explanation, _ = search(world, late)
        assert is_explained(explanation) == (late in possible), (late, possible)
        given_up = {
            (p, offset)
            for p, offset, end in visits
            if (p, end) in (explanation.not_late if (p, offset) in late else explanation.not_on_time)
        }
        assert any((late ^ other) <= given_up for other in possible), (late, given_up)


@few_worlds
def test_lemma_9_demands(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    order = drawn_order(chance, world)
    decisions = world.decisions(world.decide(order, chance))
    queues = demands_of(world.needs(decisions), decisions, Explanation())
    for partition, cut in world.cuts(order):
        for demands in queues[partition]:
            if demands.offset == cut[partition]:
                assert all(cut[other] >= position for other, position in demands.positions.items())


@few_worlds
def test_lemma_10_forced(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    order = drawn_order(chance, world)
    decisions = world.decisions(world.decide(order, chance))
    forced = Forced(world.clocks)
    for demands in in_turn(demands_of(world.needs(decisions), decisions, Explanation())):
        forced.add(demands)
    for partition, cut in world.cuts(order):
        before = forced.before(partition, cut[partition] + 1)
        assert all(cut[other] >= position for other, position in before.items())


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("seed", seeds(20))
def test_lemma_11_late_anyway(seed: int, partitions: int) -> None:
    world = drawn_world(random.Random(seed), partitions, ideal=True)
    possible = {world.decide(order) for order in all_orders(world)}
    for late in possible:
        _, certain = search(world, late)
        for partition, end in certain:
            first = world.decisions(late).late[partition, end]
            assert late - {(partition, first)} not in possible


@few_worlds
def test_lemma_12_in_turn(seed: int, partitions: int) -> None:
    chance = random.Random(seed)
    world = drawn_world(chance, partitions)
    late = drawn_wrong(chance, world, world.decide(drawn_order(chance, world), chance))
    decisions = world.decisions(late)
    needs = world.needs(decisions)
    queues = demands_of(needs, decisions, explain(needs, decisions))
    taken: dict[int, list[int]] = {partition: [] for partition in queues}
    for demands in in_turn(queues):
        for other, position in demands.positions.items():
            earlier = bisect_right([each.offset for each in queues[other]], position - 1)
            assert len(taken[other]) >= earlier
        taken[demands.partition].append(demands.offset)
    assert taken == {partition: [each.offset for each in queue] for partition, queue in queues.items()}


def test_three_partitions_that_wait_for_each_other_have_no_order() -> None:
    # Each second visit is on time though its own partition is past its window: another partition must be behind.
    world = drawn_world(random.Random(0), 3, records=0, ideal=True)
    for partition, times in {0: (35_000, 12_000), 1: (45_000, 7_000), 2: (31_000, 12_000)}.items():
        for time in times:
            add_visit(world.source, partition, "a", START + time)
        rows = visit_rows(batch_of(world.source[partition]), WINDOW_MS)
        world.clocks[partition].follow(pa.Table.from_batches([rows]), RULES, None)
    assert frozenset() not in {world.decide(order) for order in all_orders(world)}
    explanation, _ = search(world, frozenset())
    assert not is_explained(explanation)
