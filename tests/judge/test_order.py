"""The search for an order of reading is exact: compared with every possible order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from faultline.verdict.flink.clock import PartitionClock
from faultline.verdict.flink.order import Decisions, Explanation, Needs, explain
from faultline.verdict.flink.proof import proven
from faultline.verdict.flink.reader import visit_rows
from faultline.verdict.records import batch_of
from tests.judge.flink_world import BOUND_MS, RULES, START, WINDOW_MS, Source, add_visit
from tests.tiers import seeds

Decided = frozenset[tuple[int, int]]
"""The visits that were called late: partition and offset. All others were on time."""


def small_source(chance: random.Random, partitions: int, records: int) -> Source:
    """Draw a few visits whose times are close to where decisions change."""
    times = [0, WINDOW_MS, WINDOW_MS + BOUND_MS - 1, WINDOW_MS + BOUND_MS, 2 * WINDOW_MS + BOUND_MS, 4 * WINDOW_MS]
    source: Source = {partition: [] for partition in range(partitions)}
    for number in range(records):
        add_visit(source, number % partitions, "a", START + chance.choice(times))
    return source


def time_of(source: Source, partition: int, offset: int) -> int:
    return source[partition][offset].timestamp


def all_decisions(source: Source) -> set[Decided]:
    """Return the decisions of the job for every order of reading."""
    return {decide(source, order) for order in orders({p: len(records) for p, records in source.items()})}


def orders(left: dict[int, int]) -> Iterator[tuple[int, ...]]:
    """Yield all orders of this number of records of each partition."""
    return iter(set(itertools.permutations([p for p, count in left.items() for _ in range(count)])))


def decide(source: Source, order: tuple[int, ...]) -> Decided:
    position = dict.fromkeys(source, 0)
    tops: dict[int, int] = {}
    late = set()
    for partition in order:
        offset = position[partition]
        position[partition] += 1
        time = time_of(source, partition, offset)
        clock = min(tops.values()) - BOUND_MS if len(tops) == len(source) else 0
        if time - time % WINDOW_MS + WINDOW_MS <= clock:
            late.add((partition, offset))
        tops[partition] = max(tops.get(partition, 0), time)
    return frozenset(late)


def search(source: Source, late: Decided) -> tuple[Explanation, set[tuple[int, int]]]:
    """Ask the judge's search about these decisions; a visit that its own partition has not passed is never late."""
    clocks, passed = [], set()
    for partition, records in source.items():
        clock = PartitionClock(partition)
        rows = pa.Table.from_batches([visit_rows(batch_of(records), WINDOW_MS)])
        found = clock.follow(rows, RULES, None)
        passed |= set(zip(found["kafka_partition"].to_pylist(), found["kafka_offset"].to_pylist(), strict=True))
        # Without pauses: their length is not known.
        clock.pauses.clear()
        clocks.append(clock)
    if not late <= passed:
        return Explanation(not_late={(0, 0)}), set()
    groups: dict[str, dict[tuple[int, int], list[int]]] = {"late": {}, "on_time": {}, "passed": {}}
    for partition, records in source.items():
        for offset in range(len(records)):
            kinds = ["late"] if (partition, offset) in late else ["on_time"]
            if kinds == ["on_time"] and (partition, offset) in passed:
                kinds.append("passed")
            for kind in kinds:
                groups[kind].setdefault((partition, end_of(source, partition, offset)), []).append(offset)
    decisions = Decisions(
        late={group: min(offsets) for group, offsets in groups["late"].items()},
        on_time={group: max(offsets) for group, offsets in groups["on_time"].items()},
        passed={group: max(offsets) for group, offsets in groups["passed"].items()},
    )
    needs = Needs(clocks, decisions, len(source))
    explanation = explain(needs, decisions)
    return explanation, proven(needs, decisions, explanation)


def end_of(source: Source, partition: int, offset: int) -> int:
    time = time_of(source, partition, offset)
    return time - time % WINDOW_MS + WINDOW_MS


def explained(source: Source, late: Decided) -> bool:
    explanation, _ = search(source, late)
    return not explanation.not_late and not explanation.not_on_time


@pytest.mark.parametrize(("partitions", "records"), [(1, 6), (2, 7), (3, 7), (4, 7)])
@pytest.mark.parametrize("seed", seeds(20))
def test_decisions_are_explained_exactly_when_some_order_makes_them(seed: int, partitions: int, records: int) -> None:
    source = small_source(random.Random(seed), partitions, records)
    possible = all_decisions(source)
    places = [(partition, offset) for partition, records in source.items() for offset in range(len(records))]
    for count in range(len(places) + 1):
        for late in map(frozenset, itertools.combinations(places, count)):
            assert explained(source, late) == (late in possible), (late, possible)


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("seed", seeds(20))
def test_proven_late_is_late_in_every_order_that_makes_the_other_decisions_right(seed: int, partitions: int) -> None:
    source = small_source(random.Random(seed), partitions, 7)
    possible = all_decisions(source)
    for late in possible:
        _, certain = search(source, late)
        for partition, end in certain:
            first = min(o for p, o in late if p == partition and end_of(source, p, o) == end)
            assert late - {(partition, first)} not in possible


def test_three_partitions_that_wait_for_each_other_have_no_order() -> None:
    # Each second visit is on time though its own partition is past its window: another partition must be behind.
    source: Source = {0: [], 1: [], 2: []}
    for partition, times in {0: (35_000, 12_000), 1: (45_000, 7_000), 2: (31_000, 12_000)}.items():
        for time in times:
            add_visit(source, partition, "a", START + time)
    assert frozenset() not in all_decisions(source)
    assert not explained(source, frozenset())
