"""The closing visits: which window they end, where they go, and when none is needed."""

from __future__ import annotations

import argparse
import json

import pytest

from contract.settings import Settings
from contract.visit import CLOSING_PREFIX, parse_visit
from generator.close import Windows, closed_to, closing_id, closing_visits
from generator.config import add_flags, load
from generator.sender import partition_of
from generator.topic import Newest, id_text
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
    parser = argparse.ArgumentParser()
    add_flags(parser)
    config = load(parser.parse_args(["--start", "2026-01-01T00:00:00Z"]), Settings(environ={}))
    usual = json.loads(next(stream(config)).value)
    closing = json.loads(closing_visits(35_000, 1, "x")[0][0].value)

    def shape(value: object) -> object:
        return {name: shape(item) for name, item in value.items()} if isinstance(value, dict) else None

    assert shape(closing) == shape(usual)


def test_two_closings_share_no_id() -> None:
    assert not {closing_id(0, 2, "a"), closing_id(1, 2, "a")} & {closing_id(0, 2, "b"), closing_id(1, 2, "b")}


def closed(*newest: tuple[int, int, int] | None, closing: set[int] | None = None) -> int | None:
    """Ask of partitions, each as offset and timestamp of the newest record, and the end; None is an empty one."""
    return closed_to(
        {number: Newest(*each[:2]) for number, each in enumerate(newest) if each},
        {number: each[2] if each else 0 for number, each in enumerate(newest)},
        set(range(len(newest))) if closing is None else closing,
        WINDOWS,
    )


def test_nothing_is_open_after_a_closing() -> None:
    assert closed((7, 35_001, 8), (0, 35_001, 1)) == 30_000


@pytest.mark.parametrize(
    ("newest", "closing"),
    [
        (((7, 35_001, 8), (0, 35_001, 1)), {0}),  # the newest of a partition is a common visit
        (((7, 35_001, 9), (0, 35_001, 1)), {0, 1}),  # a visit came after the closing one, with an older time
        (((7, 35_001, 8), None), {0}),  # a partition has none
        (((7, 35_001, 8), (0, 35_000, 1)), {0, 1}),  # the closing ended between two visits
        (((7, 35_000, 8), (0, 35_000, 1)), {0, 1}),  # the closing ended after the first round
        (((7, 45_001, 8), (0, 35_001, 1)), {0, 1}),  # the partitions were closed to different ends
        (((7, 32_001, 8), (0, 32_001, 1)), {0, 1}),  # they were closed for another bound
    ],
)
def test_whatever_else_is_closed(newest: tuple[tuple[int, int, int] | None, ...], closing: set[int]) -> None:
    assert closed(*newest, closing=closing) is None


def test_a_topic_id_is_written_as_the_tools_of_kafka_do() -> None:
    # Both from one broker: what the client has, and what kafka-topics.sh --describe shows.
    assert id_text("aea8be2b-99c8-4c76-8aa5-7bee1349fcca") == "rqi-K5nITHaKpXvuE0n8yg"
