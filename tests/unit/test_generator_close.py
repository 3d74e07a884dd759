"""The closing visits: which window they end, where they go, and when none is needed."""

from __future__ import annotations

import json

import pytest

from faultline.formats.visit import CLOSING_PREFIX, iso_time
from faultline.settings import Settings
from generator.close import closing_id, closing_visits
from generator.config import config_of
from generator.event_times import PartitionClock, Windows, closed_to, still_open
from generator.topic import LAST_EVENT_TIME, id_text
from generator.visits import stream

WINDOWS = Windows(10_000, 5_000)


@pytest.mark.parametrize(("event_time", "end"), [(0, 10_000), (9_999, 10_000), (10_000, 20_000), (25_001, 30_000)])
def test_the_end_of_a_window_belongs_to_the_next(event_time: int, end: int) -> None:
    assert WINDOWS.end_of(event_time) == end


def test_closing_visits_have_the_fields_of_any_visit() -> None:
    config = config_of(["--start", "2026-01-01T00:00:00Z"], Settings(environ={}))
    usual = json.loads(next(stream(config)).value)
    closing = json.loads(closing_visits(35_000, 1, "x")[0][0].value)

    def shape(value: object) -> object:
        return {name: shape(item) for name, item in value.items()} if isinstance(value, dict) else None

    assert shape(closing) == shape(usual)


def test_two_closings_share_no_id() -> None:
    assert not {closing_id(0, 2, "a"), closing_id(1, 2, "a")} & {closing_id(0, 2, "b"), closing_id(1, 2, "b")}


def visit(visit_id: str, event_time: int) -> bytes:
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(event_time)}).encode()


def clock_of(*visits: tuple[str, int]) -> PartitionClock:
    clock = PartitionClock()
    for offset, (visit_id, event_time) in enumerate(visits):
        clock.read(offset, visit(visit_id, event_time))
    return clock


def closed(*partitions: list[tuple[str, int]]) -> int | None:
    return closed_to({number: clock_of(*visits) for number, visits in enumerate(partitions)}, WINDOWS)


CLOSING = [(f"{CLOSING_PREFIX}1", 35_000), (f"{CLOSING_PREFIX}1", 35_001)]


BEYOND = ("b", LAST_EVENT_TIME + 1)


@pytest.mark.parametrize(
    "partitions",
    [
        (CLOSING,),
        (CLOSING, CLOSING),
        ([("a", 29_999), *CLOSING], [("a", 35_000), *CLOSING]),  # older visits, in several windows
        ([BEYOND, *CLOSING], CLOSING),  # a visit whose window nothing can close
    ],
)
def test_partitions_are_closed_to_the_end_of_one_window(partitions: tuple[list[tuple[str, int]], ...]) -> None:
    assert closed(*partitions) == 30_000


def test_a_visit_whose_window_cannot_be_closed_is_named() -> None:
    clocks = {0: clock_of(*CLOSING), 1: clock_of(BEYOND, ("a", 5), BEYOND, *CLOSING)}
    assert still_open({0: clocks[0]}) == ""
    assert still_open(clocks).endswith(": 2 in partition 1 from offset 0 on")


@pytest.mark.parametrize(
    "partitions",
    [
        ([("a", 35_001)], CLOSING),  # the newest of a partition is a common visit
        ([*CLOSING, ("a", 20_000)], CLOSING),  # a visit came after the closing one, with an older time
        ([*CLOSING, ("a", 95_000)], CLOSING),  # with a newer one
        ([("a", 95_000), *CLOSING], CLOSING),  # it was before the closing, which passed it over
        ([*CLOSING, BEYOND], CLOSING),  # one came that nothing can close
        (CLOSING, []),  # a partition has none
        (CLOSING, CLOSING[:1]),  # the closing ended between two visits
        (CLOSING[:1], CLOSING[:1]),  # the closing ended after the first round
        ([*CLOSING, (f"{CLOSING_PREFIX}2", 45_001)], CLOSING),  # the partitions were closed to different ends
        ([(f"{CLOSING_PREFIX}1", 32_001)], [(f"{CLOSING_PREFIX}1", 32_001)]),  # they were closed for another bound
    ],
)
def test_whatever_else_is_closed(partitions: tuple[list[tuple[str, int]], ...]) -> None:
    assert closed(*partitions) is None


def test_a_record_that_is_no_visit_moves_no_clock_and_is_not_closed() -> None:
    clock = clock_of(*CLOSING)
    clock.read(2, b"no visit")
    assert (clock.newest, clock.closed) == (35_001, False)


def test_a_topic_id_is_written_as_the_tools_of_kafka_do() -> None:
    # Both from one broker: what the client has, and what kafka-topics.sh --describe shows.
    assert id_text("aea8be2b-99c8-4c76-8aa5-7bee1349fcca") == "rqi-K5nITHaKpXvuE0n8yg"
