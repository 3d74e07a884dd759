"""Compare the pages per window that the job with one more aggregate writes with a count of the source.

Usage: python -m faultline.probes.pages BEGAN [ENDED]

BEGAN and ENDED are offsets of `visits` as JSON, `{"0": 900, "1": 900}`: where the new operator began to read, and where
it ended (default: the present end). Prints one line of JSON: `whole_from`, the start of the first window of which no
visit came before BEGAN; `whole`, how many windows on `visit_windows` start there or later; `wrong`, how many of those
are not on `visit_pages` exactly once with the counted number; `short`, how many windows before `whole_from` are on
`visit_pages` with fewer pages than counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from faultline.command import run
from faultline.formats.visit import (
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
    iso_time,
    parse_event_time,
    parse_visit,
)
from faultline.settings import Settings
from faultline.verdict.cluster import Cluster
from faultline.verdict.records import Record, Span, Spans

Window = tuple[str, int]
"""A visit_id, and the start of the window in milliseconds since the epoch."""
Ends = Mapping[int, int]
"""The first offset of each partition that is not read."""


class Topics:
    """The topics of a stack, read with the job's settings."""

    def __init__(self, settings: Settings) -> None:
        self._cluster, self._settings = Cluster(settings.bootstrap), settings

    def records(self, setting: str, ends: Ends | None = None) -> Iterator[Record]:
        """Yield the committed records of a topic, in each partition before its end. Raises Unknown."""
        topic = self._settings.text(setting)
        spans: Spans = self._cluster.spans(topic, committed=True)
        if ends is not None:
            # A partition that is not named was not read.
            spans = {each: Span(span.begin, min(span.end, ends.get(each, 0))) for each, span in spans.items()}
        for batch in self._cluster.read(topic, spans):
            yield from batch.records()

    def windows(self, setting: str) -> Iterator[tuple[Window, dict[str, object]]]:
        """Yield each written window, with its fields."""
        for record in self.records(setting):
            fields = json.loads(record.value or b"")
            start = parse_event_time(fields["window_start"])
            if start is not None:
                yield (fields["visit_id"], start), fields


def compare(topics: Topics, length_ms: int, began: Ends, ended: Ends | None) -> dict[str, object]:
    """Return the numbers of the module's first lines. Raises Unknown when a topic cannot be read."""
    before = (parse_visit(record.value) for record in topics.records("VISITS_TOPIC", began))
    newest = max((visit.event_time for visit in before if visit), default=0)
    whole_from = (newest // length_ms + 1) * length_ms
    # The windows that can be short are the last ones before it.
    counted = _counted(topics, length_ms, whole_from - 2 * length_ms, ended)
    written: defaultdict[Window, list[object]] = defaultdict(list)
    for window, fields in topics.windows("VISIT_PAGES_TOPIC"):
        written[window].append(fields["pages"])
    whole = Counter(window for window, _ in topics.windows("VISIT_WINDOWS_TOPIC") if window[1] >= whole_from)
    return {
        "whole_from": iso_time(whole_from),
        "whole": len(whole),
        "wrong": sum(written[window] != [counted.get(window)] for window in whole),
        "short": sum(
            window[1] < whole_from and pages < counted[window]
            for window, [*numbers] in written.items()
            for pages in numbers
            if window in counted and isinstance(pages, int)
        ),
    }


def _counted(topics: Topics, length_ms: int, earliest: int, ended: Ends | None) -> dict[Window, int]:
    """Count the different pages of each window from the source, without the visits that the job found late."""
    late = {_source_of(record) for record in topics.records("VISITS_LATE_TOPIC")}
    pages: defaultdict[Window, set[object]] = defaultdict(set)
    for record in topics.records("VISITS_TOPIC", ended):
        visit = parse_visit(record.value)
        if visit is None or visit.event_time < earliest or (record.partition, record.offset) in late:
            continue
        window = (visit.visit_id, visit.event_time // length_ms * length_ms)
        page = json.loads(record.value or b"").get("page")
        # As COUNT(DISTINCT page) does: a visit without a page makes a window, and adds nothing.
        pages[window] |= set() if page is None else {page}
    return {window: len(found) for window, found in pages.items()}


def _source_of(record: Record) -> tuple[int, int]:
    headers = {name: int(value or b"0") for name, value in record.headers if name.startswith("source.")}
    return headers[SOURCE_PARTITION_HEADER], headers[SOURCE_OFFSET_HEADER]


def _offsets(words: str) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in json.loads(words).items()}


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    began, *ended = map(_offsets, arguments)
    settings = Settings()
    length_ms = 1000 * settings.number("FLINK_WINDOW_SECONDS")
    print(json.dumps(compare(Topics(settings), length_ms, began, ended[0] if ended else None)))
    return 0


if __name__ == "__main__":
    run("pages", lambda: main(sys.argv[1:]))
