"""The generator's visits as files, for labs that need event time but no Kafka."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from faultline.command import CommandError
from faultline.formats.visit import parse_event_time
from labs.frame.dated_files import put
from labs.frame.programs import generate

_START = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Seen:
    """One visit of a file; the event time in milliseconds since the epoch."""

    visit_id: str
    event_time: int
    page: str


def visits_in_files(folder: Path, files: int, per_file: int, *flags: str) -> list[list[Seen]]:
    """Let the generator fill `files` files, in order of their times; returns the visits of each.

    `flags`: flags of the generator. Raises CommandError when it fails.
    """
    printed = generate(files * per_file, "--to-stdout", "--start", _START, *flags)
    values = [json.loads(line)["value"] for line in printed.splitlines()]
    seen = []
    for number in range(files):
        chosen = values[number * per_file : (number + 1) * per_file]
        put(folder / f"visits-{number:02d}.json", chosen, number)
        seen.append([_seen(json.loads(value)) for value in chosen])
    return seen


def _seen(visit: dict[str, str]) -> Seen:
    event_time = parse_event_time(visit["event_time"])
    if event_time is None:
        raise CommandError(f"the generator made a visit without an event time: {visit}")
    return Seen(visit["visit_id"], event_time, visit["page"])


def page_counts(visits: list[Seen], window_ms: int) -> Counter[tuple[int, str]]:
    """Return visits by (end of the window in milliseconds since the epoch, page), counted without Spark."""
    return Counter(((visit.event_time // window_ms + 1) * window_ms, visit.page) for visit in visits)
