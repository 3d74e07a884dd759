"""Late or on time: the judge says violated exactly when no order of reading makes the decisions right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.formats.verdict import Outcome
from faultline.formats.visit import CLOSING_PREFIX
from tests.judge.flink_world import BOUND_MS, START, WINDOW_MS, Source, add, judge_outputs, visit_value
from tests.judge.reading_orders import Orders, outputs_of
from tests.judge.windows_worlds import examples, says

pytestmark = pytest.mark.timeout(600)

SECONDS = st.one_of(st.integers(0, 60), st.sampled_from([0, 10, 14, 15, 25, 40]))
VISITS = st.lists(st.tuples(st.integers(0, 3), SECONDS, st.sampled_from("ab")), min_size=1, max_size=14)


def write(visits: list[tuple[int, int, str]], partitions: int) -> Source:
    """Write visits that all arrive at once, so that no partition pauses, and closing visits."""
    source: Source = {partition: [] for partition in range(partitions)}
    for partition, second, visit_id in visits:
        value = visit_value(visit_id, START + second * 1000)
        add(source, partition % partitions, visit_id.encode(), value, START)
    newest = START + max(second for _, second, _ in visits) * 1000
    closing = newest // WINDOW_MS * WINDOW_MS + WINDOW_MS + BOUND_MS
    for moment in (closing, closing + 1):
        for partition in source:
            visit_id = f"{CLOSING_PREFIX}{partition}"
            add(source, partition, visit_id.encode(), visit_value(visit_id, moment), START)
    return source


@examples(60)
@given(VISITS, st.integers(1, 4), st.lists(st.integers(0, 3), max_size=20), st.sets(st.integers(0, 13), max_size=2))
def test_decisions_are_violated_exactly_when_no_order_makes_them(
    visits: list[tuple[int, int, str]], partitions: int, order: list[int], wrong: set[int]
) -> None:
    source = write(visits, partitions)
    orders = Orders(source)
    late = orders.late_in(order)
    places = [(p, offset) for p, records in source.items() for offset in range(len(records) - 2)]
    late ^= {places[number % len(places)] for number in wrong}
    judgement = judge_outputs(source, outputs_of(source, late, orders.last_closed()))
    expected = Outcome.HOLDS if orders.explain(late) else Outcome.VIOLATED
    assert judgement.verdict.outcome is expected, says(judgement.verdict)
