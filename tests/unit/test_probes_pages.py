"""Pages per window against a count of the source, and visits with and without a field, on records in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator

from faultline.formats.visit import SOURCE_OFFSET_HEADER, SOURCE_PARTITION_HEADER, iso_time
from faultline.probes.fields import count, document_of
from faultline.probes.pages import Ends, Topics, compare
from faultline.verdict.records import Record

LENGTH_MS = 10_000
START = 1_767_225_600_000


def view(offset: int, visit_id: str, second: float, page: str | None) -> Record:
    at = START + int(second * 1000)
    value = {"visit_id": visit_id, "event_time": iso_time(at)} | ({} if page is None else {"page": page})
    return Record(0, offset, visit_id.encode(), json.dumps(value).encode(), at)


def window(offset: int, visit_id: str, second: int, **fields: object) -> Record:
    start = START + second * 1000
    value = {"visit_id": visit_id, "window_start": iso_time(start)} | fields
    return Record(0, offset, visit_id.encode(), json.dumps(value).encode(), start)


class Recorded(Topics):
    """Topics of one partition, in memory."""

    def __init__(self, **topics: list[Record]) -> None:
        self._topics = topics

    def records(self, setting: str, ends: Ends | None = None) -> Iterator[Record]:
        found = self._topics.get(setting, [])
        return iter(found if ends is None else [each for each in found if each.offset < ends.get(0, 0)])


VISITS = [
    # The first savepoint ends after offset 1: the window of second 0 is open in it.
    view(0, "a", 1, "/x"), view(1, "a", 2, "/y"), view(2, "a", 3, "/z"),
    view(3, "b", 11, "/x"), view(4, "b", 12, "/x"), view(5, "b", 13, None),
    # Late, and set aside.
    view(6, "b", 14, "/late"),
    # After the last savepoint.
    view(7, "b", 15, "/after"),
]  # fmt: skip
LATE = [
    VISITS[6]._replace(headers=[(SOURCE_PARTITION_HEADER, b"0"), (SOURCE_OFFSET_HEADER, b"6"), ("reason", b"over")])
]
WINDOWS = [window(0, "a", 0), window(1, "b", 10)]
BEGAN, ENDED = {0: 2}, {0: 7}


def found(*pages: Record) -> dict[str, object]:
    topics = Recorded(
        VISITS_TOPIC=VISITS, VISITS_LATE_TOPIC=LATE, VISIT_WINDOWS_TOPIC=WINDOWS, VISIT_PAGES_TOPIC=list(pages)
    )
    return compare(topics, LENGTH_MS, BEGAN, ENDED)


def test_a_window_that_was_open_is_short_and_a_later_one_is_whole() -> None:
    expected = {"whole_from": iso_time(START + 10_000), "whole": 1, "wrong": 0, "short": 1}
    assert found(window(0, "a", 0, pages=1), window(1, "b", 10, pages=1)) == expected


def test_a_whole_window_that_is_missing_repeated_or_different_is_wrong() -> None:
    right = window(1, "b", 10, pages=1)
    assert [found(*pages)["wrong"] for pages in ([], [right, right], [window(1, "b", 10, pages=2)])] == [1, 1, 1]


def test_a_window_that_was_open_and_has_all_pages_is_not_short() -> None:
    assert found(window(0, "a", 0, pages=3))["short"] == 0


def test_a_field_is_there_only_at_the_top_of_one_json_object() -> None:
    values = [b'{"campaign": null}', b'{"context": {"campaign": 1}}', b'["campaign"]', b"campaign", b"", None]
    assert count("campaign" in document_of(value) for value in values) == {"with": 1, "without": 5}
