"""The closing visits: which window they end, where they go, and when none is needed."""

from __future__ import annotations

import json

import pytest

from faultline.formats.visit import CLOSING_PREFIX, iso_time, parse_visit
from faultline.settings import Settings
from generator.close import closing_id, closing_visits
from generator.config import config_of
from generator.event_times import PartitionClock, Windows, closed_to, leader, still_open
from generator.sender import partition_of
from generator.topic import LAST_EVENT_TIME, id_text
from generator.visits import stream

WINDOWS = Windows(10_000, 5_000)


@pytest.mark.parametrize(("event_time", "end"), [(0, 10_000), (9_999, 10_000), (10_000, 20_000), (25_001, 30_000)])
def test_the_end_of_a_window_belongs_to_the_next(event_time: int, end: int) -> None:
    assert WINDOWS.end_of(event_time) == end


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_each_partition_gets_two_visits_the_first_ones_first(partitions: int) -> None:
    rounds = closing_visits(35_000, partitions, "20260101T000000.000Z")
    for number, records in enumerate(rounds):
        assert [partition_of(record.key, partitions) for record in records] == list(range(partitions))
        for record in records:
            visit = parse_visit(record.value)
            assert visit is not None
            assert visit.event_time == record.timestamp == 35_000 + number
            assert visit.visit_id == record.key.decode()
            assert visit.visit_id.startswith(f"{CLOSING_PREFIX}20260101T000000.000Z-")
    assert len(rounds) == 2


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


def test_nothing_is_open_after_a_closing() -> None:
    assert closed([("a", 29_999), *CLOSING], CLOSING) == 30_000


@pytest.mark.parametrize(
    "partitions",
    [
        ([("a", 35_001)], CLOSING),  # the newest of a partition is a common visit
        ([*CLOSING, ("a", 20_000)], CLOSING),  # a visit came after the closing one, with an older time
        ([*CLOSING, ("a", 95_000)], CLOSING),  # with a newer one
        ([("a", 95_000), *CLOSING], CLOSING),  # it was before the closing, which passed it over
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


def test_the_partition_that_is_ahead_is_named() -> None:
    words = leader({0: clock_of(("a", 0)), 1: clock_of(("a", 0), ("a", 61_000))}, WINDOWS)
    assert "partition 1 is 61 s ahead" in words and "offset 1" in words
    assert leader({0: clock_of(("a", 0)), 1: clock_of(("a", 10_000))}, WINDOWS) == ""
    assert leader({0: clock_of(("a", 99_000))}, WINDOWS) == ""


def test_what_no_visit_can_close_is_named() -> None:
    clock = clock_of(("a", 0), ("a", LAST_EVENT_TIME + 1), ("b", LAST_EVENT_TIME + 2))
    assert clock.newest == 0
    assert "2 in partition 3 from offset 1 on" in still_open({2: clock_of(("a", 0)), 3: clock})
    assert still_open({2: clock_of(("a", 0))}) == ""


def test_a_topic_id_is_written_as_the_tools_of_kafka_do() -> None:
    # Both from one broker: what the client has, and what kafka-topics.sh --describe shows.
    assert id_text("aea8be2b-99c8-4c76-8aa5-7bee1349fcca") == "rqi-K5nITHaKpXvuE0n8yg"
