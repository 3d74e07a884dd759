"""The judge of the classic job: small sources, and outputs that are wrong in one way each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from faultline.formats.verdict import Outcome, Verdict
from faultline.formats.visit import iso_time
from faultline.verdict.classic.judge import ClassicFacts, judge
from faultline.verdict.flink.reader import VISITS, WINDOWS, VisitRows, window_rows
from faultline.verdict.records import Record, batch_of
from faultline.verdict.store import Store, open_store

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


def judged(
    store: Store,
    windows: Sequence[Window],
    *,
    late: Sequence[Visit | bytes] = LATE,
    more: Sequence[Visit] = (),
    position: int | None = None,
) -> Verdict:
    """Judge these windows against SOURCE and more visits, after everything was committed, or up to a position."""
    source = [*(visit(*one) for one in (*SOURCE, *more)), b"junk"]
    tables = (
        ("visits", VISITS, VisitRows(WINDOW_MS)(batch_of(records(source)))),
        (
            "late",
            VISITS,
            VisitRows(WINDOW_MS)(batch_of(records([one if isinstance(one, bytes) else visit(*one) for one in late]))),
        ),
        ("windows", WINDOWS, window_rows(batch_of(records([window(*one) for one in windows])), WINDOW_MS)),
    )
    for name, schema, rows in tables:
        store.create(name, schema)
        store.append(name, pa.Table.from_batches([rows]))
    positions = {0: len(source) if position is None else position}
    facts = ClassicFacts("classic_windows", "classic_late", WINDOW_MS, CLOSED_MS, positions, position is None)
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


ALL = [*RIGHT, ("b", 20, 1)]


@pytest.mark.parametrize(
    ("late", "more", "windows", "counts"),
    [
        ([*LATE, ("zzz", 4)], [], ALL, (0, 1)),
        ([*LATE, ("b", 4)], [], ALL, (0, 1)),
        ([*LATE, ("c", 4), ("c", 4), ("c", 4)], [("c", 4)], ALL, (2, 0)),
        ([*LATE, b"junk", b"\xff"], [], ALL, (0, 2)),
        (LATE, [("closing-0", 5)], [*ALL, ("closing-0", 0, 7), ("closing-0", 0, 9)], (1, 1)),
        (LATE, [], [("a", 0, 1), ("a", 0, 3), *ALL[1:]], (1, 1)),
    ],
    ids=[
        "late-of-nothing",
        "late-of-another-time",
        "late-again",
        "late-unreadable",
        "closing-miscounted",
        "counts-that-cancel",
    ],
)
def test_what_was_never_sent_or_is_there_too_often_is_violated(
    store: Store,
    late: Sequence[Visit | bytes],
    more: Sequence[Visit],
    windows: Sequence[Window],
    counts: tuple[int, int],
) -> None:
    verdict = judged(store, windows, late=late, more=more)
    assert verdict.outcome is Outcome.VIOLATED
    assert (verdict.duplicated, verdict.unexpected) == counts
    found = {finding.category for finding in verdict.examples}
    assert [category in found for category in ("duplicated", "unexpected")] == [count > 0 for count in counts]


def test_a_window_of_closing_visits_that_is_due_is_missed_and_an_open_one_is_not(store: Store) -> None:
    assert judged(store, ALL, more=[("closing-0", 5)]).lost == 1
    assert judged(store, ALL, more=[("closing-0", 25)]).outcome is Outcome.HOLDS
    held = judged(store, [*ALL, ("closing-0", 0, 1)], more=[("closing-0", 5)])
    assert (held.outcome, held.closing, held.records["closing"]) == (Outcome.HOLDS, 1, 1)


def test_a_visit_that_is_not_decided_yet_makes_no_window_wrong(store: Store) -> None:
    one_more = [("a", 4)]
    assert judged(store, ALL, more=one_more).outcome is Outcome.VIOLATED
    assert judged(store, ALL, more=one_more, position=len(SOURCE)).outcome is Outcome.HOLDS
    # One that misses two of them is wrong.
    assert judged(store, [("a", 0, 1), *ALL[1:]], more=one_more, position=len(SOURCE)).lost == 1
