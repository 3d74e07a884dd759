"""The judge of the windowing job: faultless runs hold, each way of tampering is found and named."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from contract.visit import VisitWindow, iso_time
from tests.unit.verdict_world import (
    BOUND_MS,
    START,
    WINDOW_MS,
    Job,
    Routed,
    Source,
    judge_job,
    other_count,
    random_source,
    run_job,
    visit,
)
from verdict.model import Outcome, Verdict


def assert_adds_up(verdict: Verdict) -> None:
    found = verdict.observed - verdict.duplicated - verdict.unexpected + verdict.lost + verdict.pending
    assert verdict.expected == found
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values())


@pytest.fixture
def world() -> tuple[Source, Job]:
    chance = random.Random(7)
    source = random_source(chance)
    job = run_job(source, chance)
    assert job.windows and job.late and job.rejected
    return source, job


@pytest.mark.parametrize("seed", range(12))
def test_any_faultless_run_in_any_interleaving_holds(seed: int) -> None:
    chance = random.Random(seed)
    source = random_source(chance)
    job = run_job(source, chance)
    verdict = judge_job(source, job)
    assert verdict.outcome is Outcome.HOLDS, verdict
    assert (verdict.late, verdict.rejected) == (len(job.late), len(job.rejected))
    assert verdict.observed == len(job.windows) + len(job.late) + len(job.rejected)
    assert verdict.records["in_windows"] == sum(window.count for window in job.windows)
    assert_adds_up(verdict)


@pytest.mark.parametrize("seed", range(5))
def test_any_window_removed_before_the_last_one_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    source = random_source(chance)
    job = run_job(source, chance)
    last_end = max(window.window_end for window in job.windows)
    gone = chance.choice([window for window in job.windows if window.window_end < last_end])
    job.windows.remove(gone)
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 0)
    named = verdict.examples[0]
    assert (named.category, named.names["visit_id"]) == ("lost", gone.visit_id)
    assert named.names["window_start"] == iso_time(gone.window_start)
    assert_adds_up(verdict)


def test_all_windows_removed_is_violated_since_the_source_alone_says_that_they_are_due(
    world: tuple[Source, Job],
) -> None:
    source, job = world
    verdict = judge_job(source, replace(job, windows=[]))
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.lost > 0


def test_a_repeated_window_is_duplicated(world: tuple[Source, Job]) -> None:
    source, job = world
    job.windows += [job.windows[3], job.windows[3]]
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 2, 0)
    assert "is there 3 times" in verdict.examples[0].text
    assert_adds_up(verdict)


@pytest.mark.parametrize(
    "wrong",
    [
        other_count,
        lambda window: replace(window, count=0),
        lambda window: replace(window, first_event_time=window.first_event_time - 1),
        lambda window: replace(window, last_event_time=window.last_event_time + 1),
    ],
)
def test_a_window_with_other_content_is_lost_and_unexpected_with_both_figures(
    world: tuple[Source, Job], wrong: object
) -> None:
    source, job = world
    before = job.windows[5]
    job.windows[5] = wrong(before)  # type: ignore[operator]
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 1)
    text = next(example.text for example in verdict.examples if example.category == "unexpected")
    assert f"has {job.windows[5].count} visits" in text
    assert f"recomputed it has {before.count} visits" in text
    assert_adds_up(verdict)


def test_a_right_window_with_a_wrong_one_beside_it_is_unexpected_only(world: tuple[Source, Job]) -> None:
    source, job = world
    job.windows.append(other_count(job.windows[0]))
    verdict = judge_job(source, job)
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (0, 0, 1)
    assert_adds_up(verdict)


def test_a_window_without_visits_is_unexpected(world: tuple[Source, Job]) -> None:
    source, job = world
    job.windows.append(VisitWindow("stranger", START, START + WINDOW_MS, 1, START, START))
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.unexpected) == (Outcome.VIOLATED, 1)
    assert verdict.examples[0].names["visit_id"] == "stranger"


def test_a_record_that_is_no_window_is_unexpected(world: tuple[Source, Job]) -> None:
    source, job = world
    job.malformed.append("is not JSON: {")
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.unexpected) == (Outcome.VIOLATED, 1)
    assert verdict.examples[0].text == "visit_windows partition 1 offset 0 is not JSON: {"
    assert_adds_up(verdict)


def test_a_late_record_that_disappears_takes_its_window_with_it(world: tuple[Source, Job]) -> None:
    source, job = world
    del job.late[0]
    verdict = judge_job(source, job)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.lost == 1
    assert_adds_up(verdict)


def test_a_rejected_record_that_disappears_is_lost_and_named(world: tuple[Source, Job]) -> None:
    source, job = world
    gone = job.rejected.pop(0)
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 1)
    assert verdict.examples[0].names == {"topic": "visits", "partition": gone.partition, "offset": gone.offset}
    assert_adds_up(verdict)


@pytest.mark.parametrize("topic", ["late", "rejected"])
def test_a_routed_record_twice_is_duplicated(world: tuple[Source, Job], topic: str) -> None:
    source, job = world
    getattr(job, topic).append(getattr(job, topic)[0])
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 1, 0)
    assert_adds_up(verdict)


@pytest.mark.parametrize("topic", ["late", "rejected"])
@pytest.mark.parametrize("place", [(None, None), (0, 100_000), (7, 0)])
def test_a_routed_record_that_stands_for_none_is_unexpected(
    world: tuple[Source, Job], topic: str, place: tuple[int | None, int | None]
) -> None:
    source, job = world
    getattr(job, topic).append(Routed(*place, b"{"))
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.unexpected) == (Outcome.VIOLATED, 0, 1)
    assert_adds_up(verdict)


@pytest.mark.parametrize("topic", ["late", "rejected"])
def test_a_routed_record_with_other_bytes_is_unexpected(world: tuple[Source, Job], topic: str) -> None:
    source, job = world
    copies = getattr(job, topic)
    copies[0] = replace(copies[0], value=copies[0].value + b" ")
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.unexpected) == (Outcome.VIOLATED, 1)
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values())


def test_a_proper_visit_that_is_rejected_is_unexpected_and_its_window_still_needs_it(
    world: tuple[Source, Job],
) -> None:
    source, job = world
    source = {0: [*source[0]], 1: [*source[1]]}
    job.rejected.append(Routed(0, 0, source[0][0]))
    verdict = judge_job(source, job)
    assert (verdict.outcome, verdict.lost, verdict.unexpected) == (Outcome.VIOLATED, 0, 1)
    assert "stands for a proper visit" in verdict.examples[0].text


def test_a_visit_that_no_interleaving_makes_late_is_unexpected_on_the_late_topic() -> None:
    # The other partition's newest visit is 14.9 s in: the watermark of an idle first partition reaches 9,899 ms.
    source = {0: [visit("a", 1_000), visit("a", 2_000)], 1: [visit("b", WINDOW_MS + BOUND_MS - 1)]}
    verdict = judge_job(source, Job(late=[Routed(0, 1, source[0][1])]))
    assert verdict.outcome is Outcome.VIOLATED
    assert "cannot have been late" in verdict.examples[0].text
    # One millisecond more, and it can have been.
    source[1] = [visit("b", WINDOW_MS + BOUND_MS)]
    assert judge_job(source, Job(late=[Routed(0, 1, source[0][1])])).unexpected == 0


def test_later_visits_of_its_own_partition_do_not_make_a_visit_late() -> None:
    source = {0: [visit("a", 1_000), visit("a", 2_000), visit("a", 60_000)]}
    assert judge_job(source, Job(late=[Routed(0, 1, source[0][1])])).unexpected == 1
    source = {0: [visit("a", 60_000), visit("a", 2_000)]}
    assert judge_job(source, Job(late=[Routed(0, 1, source[0][1])])).unexpected == 0


def test_a_window_is_due_when_the_slowest_partition_without_its_last_record_is_past_it() -> None:
    edge = WINDOW_MS + BOUND_MS
    ahead = [visit("b", 0), visit("b", 90_000), visit("b", 90_000)]
    for reached, lost in ((edge - 1, 0), (edge, 2)):
        source = {0: [visit("a", 0), visit("a", reached), visit("a", 80_000)], 1: ahead}
        verdict = judge_job(source, Job())
        assert verdict.lost == lost, reached
        assert_adds_up(verdict)


def test_a_window_is_due_when_a_later_one_is_there() -> None:
    source = {0: [visit("a", 0), visit("b", WINDOW_MS)], 1: [visit("c", 1)]}
    later = VisitWindow("b", START + WINDOW_MS, START + 2 * WINDOW_MS, 1, START + WINDOW_MS, START + WINDOW_MS)
    verdict = judge_job(source, Job(windows=[later]))
    assert (verdict.lost, verdict.pending) == (2, 0)
    # A wrong one proves nothing about the watermark.
    verdict = judge_job(source, Job(windows=[other_count(later)]))
    assert (verdict.lost, verdict.pending, verdict.unexpected) == (1, 2, 1)


def test_nothing_read_is_unknown() -> None:
    assert judge_job({0: [], 1: []}, Job()).outcome is Outcome.UNKNOWN
    nothing_due = judge_job({0: [visit("a", 0)]}, Job())
    assert (nothing_due.outcome, nothing_due.pending) == (Outcome.UNKNOWN, 1)


def test_visits_before_1970_are_no_visits_and_belong_on_the_rejected_topic() -> None:
    early = b'{"visit_id":"a","event_time":"1969-12-31T23:59:59.999Z"}'
    source = {0: [early, visit("a", 0), visit("a", 0)]}
    assert judge_job(source, Job()).lost == 1
    verdict = judge_job(source, Job(rejected=[Routed(0, 0, early)]))
    assert (verdict.outcome, verdict.rejected, verdict.pending) == (Outcome.HOLDS, 1, 1)
