"""The judge of the classic job: small sources, and outputs that are wrong in one way each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from contract.visit import iso_time
from verdict.classic.judge import ClassicFacts, judge
from verdict.flink.reader import VISITS, WINDOWS, visit_rows, window_rows
from verdict.model import Outcome, Verdict
from verdict.records import Record, batch_of
from verdict.store import Store, open_store

WINDOW_MS = 10_000
Visit = tuple[str, int]
Window = tuple[str, int, int]
"""visit_id, start of the window in seconds, count."""

SOURCE: list[Visit] = [("a", 1), ("a", 2), ("b", 3), ("a", 11), ("b", 21), ("a", 4)]
LATE: list[Visit] = [("a", 4)]
RIGHT: list[Window] = [("a", 0, 2), ("b", 0, 1), ("a", 10, 1)]
CLOSED_MS = 20_000


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store."""
    with open_store(in_memory=True) as opened:
        yield opened


def visit(visit_id: str, second: int) -> bytes:
    """The record of a visit."""
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(second * 1000)}).encode()


def window(visit_id: str, start: int, count: int) -> bytes:
    """The record of a window."""
    times = {"window_start": start, "window_end": start + 10, "first_event_time": start, "last_event_time": start}
    document = {name: iso_time(second * 1000) for name, second in times.items()}
    return json.dumps({"visit_id": visit_id, "count": count, **document}).encode()


def records(values: Sequence[bytes]) -> list[Record]:
    """Records of one partition."""
    return [Record(0, offset, None, value, -1) for offset, value in enumerate(values)]


def judged(store: Store, windows: Sequence[Window], *, late: Sequence[Visit] = LATE) -> Verdict:
    """Judge these windows against SOURCE, after everything was committed."""
    source = [*(visit(*one) for one in SOURCE), b"junk"]
    tables = (
        ("visits", VISITS, visit_rows(batch_of(records(source)), WINDOW_MS)),
        ("late", VISITS, visit_rows(batch_of(records([visit(*one) for one in late])), WINDOW_MS)),
        ("windows", WINDOWS, window_rows(batch_of(records([window(*one) for one in windows])), WINDOW_MS)),
    )
    for name, schema, rows in tables:
        store.create(name, schema)
        store.append(name, pa.Table.from_batches([rows]))
    facts = ClassicFacts("classic_windows", WINDOW_MS, CLOSED_MS, caught_up=True)
    verdict = judge(store, facts).verdict
    assert verdict.expected == (
        verdict.observed - verdict.duplicated - verdict.unexpected + verdict.lost + verdict.pending
    )
    return verdict


def test_right_windows_hold_but_for_the_open_one(store: Store) -> None:
    verdict = judged(store, RIGHT)
    assert (verdict.outcome, verdict.pending, verdict.late) == (Outcome.UNKNOWN, 1, 1)
    assert verdict.records["unparsable"] == 1
    assert judged(store, [*RIGHT, ("b", 20, 1)]).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    ("windows", "lost", "duplicated", "unexpected"),
    [
        (RIGHT[1:], 1, 0, 0),
        ([*RIGHT, RIGHT[0]], 0, 1, 0),
        ([("a", 0, 1), *RIGHT[1:]], 1, 0, 1),
        ([*RIGHT, ("a", 30, 1)], 0, 0, 1),
        # Written once more for a visit that came late.
        ([("a", 0, 1), *RIGHT, ("b", 20, 1)], 1, 1, 1),
    ],
    ids=["lost", "twice", "miscounted", "of-nothing", "opened-again"],
)
def test_wrong_windows_are_violated(
    store: Store, windows: Sequence[Window], lost: int, duplicated: int, unexpected: int
) -> None:
    verdict = judged(store, windows)
    assert verdict.outcome is Outcome.VIOLATED
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (lost, duplicated, unexpected)
    assert [finding.category for finding in verdict.examples if finding.category != "pending"]


def test_a_visit_that_is_nowhere_is_lost(store: Store) -> None:
    assert judged(store, RIGHT, late=[]).lost == 1
