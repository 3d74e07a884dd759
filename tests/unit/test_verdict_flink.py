"""The judge of the windowing job: faultless runs hold, each way of tampering is found and named."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from faultline.formats.verdict import Outcome, Verdict
from faultline.formats.visit import CLOSING_PREFIX, LATE_REASON, NO_EVENT_TIME, iso_time
from faultline.verdict.records import Record
from tests.judge.flink_world import (
    BOUND_MS,
    RULES,
    START,
    WINDOW_MS,
    Outputs,
    Source,
    add,
    add_visit,
    judge_outputs,
    placed,
    random_source,
    routed_record,
    run_job,
    settle,
    visit_value,
    window_record,
)


def assert_adds_up(verdict: Verdict) -> None:
    found = verdict.observed - verdict.duplicated - verdict.unexpected + verdict.lost + verdict.pending
    assert verdict.expected == found
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values())


def verdict_of(source: Source, outputs: Outputs, *, as_is: bool = False) -> Verdict:
    verdict = judge_outputs(source, outputs, as_is=as_is).verdict
    assert_adds_up(verdict)
    return verdict


def source_of(*partitions: list[tuple[str, int]]) -> Source:
    """Visits of each partition: visit_id, and milliseconds after START."""
    source: Source = {number: [] for number in range(len(partitions))}
    for number, visits in enumerate(partitions):
        for visit_id, milliseconds in visits:
            add_visit(source, number, visit_id, START + milliseconds)
    return source


@pytest.fixture
def world() -> tuple[Source, Outputs]:
    chance = random.Random(7)
    source = settle(random_source(chance))
    outputs = run_job(source, chance)
    assert outputs.windows and outputs.late and outputs.rejected
    return source, outputs


def appended(records: list[Record], *more: Record) -> list[Record]:
    return placed([*records, *more])


@pytest.mark.parametrize("seed", range(5))
def test_open_windows_are_unknown_and_hold_as_they_are(seed: int) -> None:
    chance = random.Random(seed)
    source = random_source(chance)
    outputs = run_job(source, chance)
    verdict = verdict_of(source, outputs)
    assert verdict.outcome is Outcome.UNKNOWN
    assert "scripts/settle.sh" in verdict.reason
    verdict = verdict_of(source, outputs, as_is=True)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.pending > 0
    assert f"{verdict.pending} records pending" in verdict.reason


@pytest.mark.parametrize("seed", range(5))
def test_any_window_removed_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    source = settle(random_source(chance))
    outputs = run_job(source, chance)
    gone = chance.choice(outputs.windows)
    rest = placed([record for record in outputs.windows if record is not gone])
    verdict = verdict_of(source, replace(outputs, windows=rest))
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 0)
    named = verdict.examples[0]
    assert (named.category, named.names["visit_id"]) == ("lost", (gone.key or b"").decode())
    assert named.names["window_end"] == iso_time(gone.timestamp + 1)


def test_a_repeated_window_is_duplicated(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    again = outputs.windows[3]
    verdict = verdict_of(source, replace(outputs, windows=appended(outputs.windows, again, again)))
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 2, 0)
    assert "is there 3 times" in verdict.examples[0].text


def changed(record: Record, old: str, new: str) -> Record:
    assert record.value is not None
    assert old.encode() in record.value
    return record._replace(value=record.value.replace(old.encode(), new.encode(), 1))


RECOMPUTED = "but recomputed it has"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (lambda record: changed(record, '"count": ', '"count": 1'), RECOMPUTED),
        (lambda record: changed(record, '"first_event_time": "2026', '"first_event_time": "2025'), RECOMPUTED),
        (lambda record: changed(record, '"last_event_time": "2026', '"last_event_time": "2027'), RECOMPUTED),
        (
            lambda record: record._replace(partition=1 - record.partition, offset=10_000),
            "not in the partition of its key",
        ),
        (lambda record: record._replace(key=None), "has the key null"),
        (lambda record: record._replace(key=b"v"), "has the key v"),
        (lambda record: record._replace(timestamp=record.timestamp + 1), "record timestamp"),
        (lambda record: record._replace(headers=(("reason", b"x"),)), "has headers"),
        (lambda record: changed(record, "{", '{"count": 7, '), "each name once"),
        (lambda record: changed(record, '.000Z", "count"', '.000001Z", "count"'), "YYYY-MM-DDTHH:MM:SS.mmmZ"),
        (lambda record: changed(record, '"count"', '"counts"'), "fields of a window"),
        (lambda record: record._replace(value=b"{"), "is not JSON"),
        (lambda record: record._replace(value=None), "is not JSON"),
    ],
)
def test_a_window_with_other_content_is_lost_and_unexpected(
    world: tuple[Source, Outputs], wrong: Callable[[Record], Record], word: str
) -> None:
    source, outputs = world
    outputs.windows[5] = wrong(outputs.windows[5])
    verdict = verdict_of(source, outputs)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 1)
    assert word in next(example.text for example in verdict.examples if example.category == "unexpected")


def test_a_right_window_with_a_wrong_one_beside_it_is_unexpected_only(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    wrong = changed(outputs.windows[0], '"count": ', '"count": 1')
    verdict = verdict_of(source, replace(outputs, windows=appended(outputs.windows, wrong)))
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 0, 1)


def test_windows_of_a_visit_out_of_order_are_disordered(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    key = outputs.windows[0].key
    mine = [number for number, record in enumerate(outputs.windows) if record.key == key]
    first, second = mine[0], mine[1]
    outputs.windows[first], outputs.windows[second] = outputs.windows[second], outputs.windows[first]
    verdict = verdict_of(source, replace(outputs, windows=placed(outputs.windows)))
    assert (verdict.outcome, verdict.lost, verdict.unexpected, verdict.disordered) == (Outcome.VIOLATED, 0, 0, 1)
    assert "comes after a later window" in verdict.examples[0].text


def test_a_window_without_visits_is_unexpected(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    stranger = window_record("stranger", START + WINDOW_MS, [START])
    verdict = verdict_of(source, replace(outputs, windows=appended(outputs.windows, stranger)))
    assert (verdict.outcome, verdict.unexpected) == (Outcome.VIOLATED, 1)
    assert verdict.examples[0].names["visit_id"] == "stranger"


def test_a_late_record_that_disappears_is_lost_where_the_source_says_that_it_is_late() -> None:
    source = source_of([("a", 0), ("a", 60_000), ("b", 1_000)])
    source = settle(source)
    outputs = run_job(source, random.Random(1))
    assert len(outputs.late) == 1
    verdict = verdict_of(source, replace(outputs, late=[]))
    assert (verdict.outcome, verdict.lost, verdict.unexpected) == (Outcome.VIOLATED, 1, 0)
    assert verdict.examples[0].names["visit_id"] == "b"
    assert "late visit b" in verdict.examples[0].text


def test_a_rejected_record_that_disappears_is_lost_and_named(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    gone, *rest = outputs.rejected
    verdict = verdict_of(source, replace(outputs, rejected=placed(rest)))
    assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 1)
    headers = dict(gone.headers)
    assert verdict.examples[0].names == {
        "topic": "visits",
        "partition": int(headers["source.partition"] or b""),
        "offset": int(headers["source.offset"] or b""),
    }


@pytest.mark.parametrize("topic", ["late", "rejected"])
def test_a_routed_record_twice_is_duplicated(world: tuple[Source, Outputs], topic: str) -> None:
    source, outputs = world
    records = getattr(outputs, topic)
    verdict = verdict_of(source, replace(outputs, **{topic: appended(records, records[0])}))
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 1, 0)


@pytest.mark.parametrize("topic", ["late", "rejected"])
@pytest.mark.parametrize("place", [(0, 100_000), (7, 0)])
def test_a_routed_record_that_stands_for_none_is_unexpected(
    world: tuple[Source, Outputs], topic: str, place: tuple[int, int]
) -> None:
    source, outputs = world
    alien = routed_record(Record(*place, b"x", b"{", START), LATE_REASON)
    verdict = verdict_of(source, replace(outputs, **{topic: appended(getattr(outputs, topic), alien)}))
    assert (verdict.outcome, verdict.lost, verdict.unexpected) == (Outcome.VIOLATED, 0, 1)


@pytest.mark.parametrize("topic", ["late", "rejected"])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda record: record._replace(value=(record.value or b"") + b" "),
        lambda record: record._replace(timestamp=record.timestamp + 1),
        lambda record: record._replace(headers=record.headers[1:]),
    ],
    ids=["bytes", "timestamp", "headers"],
)
def test_a_routed_record_that_is_altered_is_lost_and_unexpected(
    world: tuple[Source, Outputs], topic: str, wrong: Callable[[Record], Record]
) -> None:
    source, outputs = world
    records = getattr(outputs, topic)
    records[0] = wrong(records[0])
    verdict = verdict_of(source, outputs)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 1)


def test_a_rejected_record_with_the_reason_of_another_is_unexpected() -> None:
    source = settle(source_of([("a", 0)]))
    add(source, 0, b"a", None, START)
    outputs = run_job(source, random.Random(1))
    assert verdict_of(source, outputs).outcome is Outcome.HOLDS
    wrong = routed_record(source[0][-1], NO_EVENT_TIME)
    verdict = verdict_of(source, replace(outputs, rejected=placed([wrong])))
    assert (verdict.lost, verdict.unexpected) == (1, 1)
    assert "reason" in verdict.examples[1].text


def late_copy(source: Source, partition: int, offset: int) -> Outputs:
    return Outputs(late=placed([routed_record(source[partition][offset], LATE_REASON)]))


def test_a_visit_that_no_clock_makes_late_is_unexpected_on_the_late_topic() -> None:
    edge = WINDOW_MS + BOUND_MS
    for reached, unexpected in ((edge - 1, 1), (edge, 0)):
        source = source_of([("a", reached), ("a", 2_000)], [("b", reached)])
        verdict = judge_outputs(source, late_copy(source, 0, 1)).verdict
        assert verdict.unexpected == unexpected, reached
        if unexpected:
            assert "cannot have been late" in verdict.examples[0].text


def test_partitions_that_shared_a_clock_in_an_earlier_run_may_have_made_each_other_late() -> None:
    ahead = [("a", second * 1_000) for second in range(60)]
    source = source_of(ahead, ahead, [("c", second * 100) for second in range(60)])
    for fewest, unexpected in ((3, 1), (2, 0)):
        verdict = judge_outputs(source, late_copy(source, 2, 59), fewest_shared=fewest).verdict
        assert verdict.unexpected == unexpected, fewest


@pytest.mark.parametrize(("counted", "is_right"), [(1, False), (2, True), (3, True)])
def test_a_window_misses_no_more_visits_than_may_still_be_late(counted: int, *, is_right: bool) -> None:
    times = [0, 100, 9_000, 9_100]
    source = source_of(
        [*(("a", time) for time in times), ("a", 30_000)], [("b", time) for time in range(0, 31_000, 1000)]
    )
    window = window_record("a", START + WINDOW_MS, [START + time for time in times[:counted]])
    # The job has decided two of the visits; then their partition paused.
    verdict = judge_outputs(source, Outputs(placed([window])), positions={0: 2, 1: 31}).verdict
    assert (verdict.unexpected == 0) == is_right


def test_a_clock_that_is_shared_does_not_go_back() -> None:
    source = settle(source_of([("a", 0), ("a", 1_000), ("a", 2_000)], [("b", 0)], [("c", 0)], [("d", 0)]))
    for late, unexpected in (([1, 2], 0), ([1], 1)):
        outputs = Outputs(late=placed([routed_record(source[0][offset], LATE_REASON) for offset in late]))
        assert judge_outputs(source, outputs, fewest_shared=2).verdict.unexpected == unexpected


def test_a_visit_is_not_late_by_a_pause_that_comes_before_one_on_time() -> None:
    source = source_of([("a", 0), ("a", 30_000), ("a", 61_000)], [("b", 0)])
    for second in (60, 61):
        add(source, 1, b"b", visit_value("b", START + second), START + second * 1_000)
    assert judge_outputs(source, late_copy(source, 1, 1)).verdict.unexpected == 1
    assert judge_outputs(source, late_copy(source, 1, 2)).verdict.unexpected == 1
    both = placed([routed_record(source[1][offset], LATE_REASON) for offset in (1, 2)])
    assert judge_outputs(source, Outputs(late=both)).verdict.unexpected == 0


def test_a_partition_that_pauses_does_not_hold_the_clock() -> None:
    # By its timestamps partition 1 has no visits for 60 s: it may count as idle, and its next visit may be late.
    source = source_of([("a", 0), ("a", 30_000), ("a", 61_000)], [("b", 0)])
    late = Record(1, 1, b"b", b'{"visit_id":"b","event_time":"2026-01-01T00:00:01.000Z"}', START + 60_000)
    source[1].append(late)
    outputs = late_copy(source, 1, 1)
    assert judge_outputs(source, outputs).verdict.unexpected == 0
    busy = replace(RULES, pause_ms=90_000)
    assert judge_outputs(source, outputs, rules=busy).verdict.unexpected == 1


def test_an_empty_partition_makes_nothing_due() -> None:
    source = source_of([("a", second * 1_000) for second in range(600)], [])
    verdict = verdict_of(source, Outputs())
    assert (verdict.outcome, verdict.lost) == (Outcome.UNKNOWN, 0)
    # Once closed, everything is due.
    verdict = verdict_of(settle(source), Outputs())
    assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 60)


def test_a_window_is_due_when_the_slowest_partition_without_its_last_record_is_past_it() -> None:
    edge = WINDOW_MS + BOUND_MS
    ahead = [("b", 0), ("b", 90_000), ("b", 90_000)]
    for reached, lost in ((edge - 1, 0), (edge, 2)):
        source = source_of([("a", 0), ("a", reached), ("a", 80_000)], ahead)
        assert verdict_of(source, Outputs()).lost == lost, reached


def test_a_window_is_due_when_a_later_one_is_there() -> None:
    source = source_of([("a", 0), ("b", WINDOW_MS), ("d", 6 * WINDOW_MS)], [("c", 1)])
    later = window_record("b", START + 2 * WINDOW_MS, [START + WINDOW_MS])
    verdict = verdict_of(source, Outputs(windows=placed([later])))
    assert (verdict.lost, verdict.pending) == (2, 1)
    # A wrong one proves nothing about the clock.
    verdict = verdict_of(source, Outputs(windows=placed([changed(later, '"count": ', '"count": 1')])))
    assert (verdict.lost, verdict.pending, verdict.unexpected) == (1, 3, 1)


def test_a_late_visit_proves_no_window_to_be_due() -> None:
    # Partition 0 is a minute ahead, so "late" is late there; partition 1 holds every window open.
    source = source_of([("a", 0), ("d", 6 * WINDOW_MS), ("late", 1)], [("c", 1)])
    late = routed_record(source[0][2], LATE_REASON)
    verdict = verdict_of(source, Outputs(late=placed([late])))
    assert (verdict.outcome, verdict.lost, verdict.pending, verdict.late) == (Outcome.UNKNOWN, 0, 3, 1)


def test_a_window_that_no_clock_passes_is_unexpected() -> None:
    source = source_of([("a", 0), ("b", WINDOW_MS)], [("c", 1)])
    verdict = verdict_of(source, Outputs(windows=placed([window_record("a", START + WINDOW_MS, [START])])))
    assert (verdict.outcome, verdict.unexpected) == (Outcome.VIOLATED, 1)
    assert any("no visit of the source closes it" in example.text for example in verdict.examples)


def test_closing_visits_are_apart() -> None:
    source = settle(source_of([("a", 0)], [("b", 1_000)]))
    outputs = run_job(source, random.Random(1))
    verdict = verdict_of(source, outputs)
    assert (verdict.outcome, verdict.expected, verdict.pending, verdict.closing) == (Outcome.HOLDS, 2, 0, 2)
    assert verdict.records["closing"] == 4
    # The next generator's visits close their windows, which then must be right like any other.
    for partition in source:
        add_visit(source, partition, f"next{partition}", START + 90_000)
    source = settle(source)
    outputs = run_job(source, random.Random(1))
    verdict = verdict_of(source, outputs)
    assert (verdict.outcome, verdict.closing) == (Outcome.HOLDS, 4)
    closing = next(r for r in outputs.windows if (r.key or b"").startswith(CLOSING_PREFIX.encode()))
    verdict = verdict_of(source, replace(outputs, windows=appended(outputs.windows, closing)))
    assert (verdict.outcome, verdict.duplicated) == (Outcome.VIOLATED, 1)


def test_nothing_read_is_unknown() -> None:
    assert verdict_of({0: [], 1: []}, Outputs()).outcome is Outcome.UNKNOWN
    nothing_due = verdict_of(source_of([("a", 0)]), Outputs())
    assert (nothing_due.outcome, nothing_due.pending) == (Outcome.UNKNOWN, 1)


def test_visits_before_1970_are_unparsable_and_belong_on_the_rejected_topic() -> None:
    early = b'{"visit_id":"a","event_time":"1969-12-31T23:59:59.999Z"}'
    source: Source = {0: []}
    add(source, 0, b"a", early, 0)
    add_visit(source, 0, "a", START)
    assert verdict_of(source, Outputs()).lost == 1
    rejected = placed([routed_record(source[0][0], NO_EVENT_TIME)])
    verdict = verdict_of(source, Outputs(rejected=rejected), as_is=True)
    assert (verdict.outcome, verdict.rejected, verdict.pending) == (Outcome.HOLDS, 1, 1)


def test_every_finding_is_given_not_the_first_few_only(world: tuple[Source, Outputs]) -> None:
    source, outputs = world
    found: list[str] = []
    lost = [*outputs.windows]
    judge_outputs(
        source,
        replace(outputs, windows=[]),
        look=lambda judgement: found.extend(finding.text for finding in judgement.findings("lost")),
    )
    assert len(found) == len(lost)
