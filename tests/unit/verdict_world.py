"""A model of both pipelines for the judge's tests: sources, what faultless jobs make of them, and their tables."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

import duckdb

from contract.visit import VisitWindow, iso_time, parse_event_time, parse_visit
from verdict.digest import record_digest
from verdict.flink_examples import Names
from verdict.flink_judge import FlinkFacts, judge
from verdict.flink_reader import encode
from verdict.model import Verdict
from verdict.store import Appender, create_tables

WINDOW_MS = 10_000
BOUND_MS = 5_000
START = parse_event_time("2026-01-01T00:00:00Z") or 0
FACTS = FlinkFacts(Names("visits", "visit_windows", "visits_late", "visits_rejected"), WINDOW_MS, BOUND_MS)

Source = dict[int, list[bytes]]
"""The values of each partition; an offset is an index."""


@dataclass(frozen=True)
class Routed:
    """A record of the late or the rejected topic: headers, and the value."""

    partition: int | None
    offset: int | None
    value: bytes


@dataclass
class Job:
    """What the windowing job wrote."""

    windows: list[VisitWindow] = field(default_factory=list)
    late: list[Routed] = field(default_factory=list)
    rejected: list[Routed] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)


def visit(visit_id: str, milliseconds: int, page: str = "home") -> bytes:
    """One visit, so many milliseconds after START."""
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(START + milliseconds), "page": page}).encode()


def random_source(chance: random.Random, records: int = 400) -> Source:
    """Two partitions of visits with disorder, late, repeated and unparsable ones."""
    source: Source = {0: [], 1: []}
    clock = 0
    for _ in range(records):
        clock += chance.randrange(0, 400)
        disorder = chance.choice([0, 0, 0, chance.randrange(BOUND_MS), chance.randrange(12 * BOUND_MS)])
        values = source[chance.choice([0, 0, 1])]
        if chance.random() < 0.05:
            values.append(chance.choice([b"", b"{", b"null", b'{"visit_id":"a"}', b"\xff"]))
        elif chance.random() < 0.03 and values:
            values.append(chance.choice(values))
        else:
            values.append(visit(f"v{chance.randrange(6)}", clock - disorder))
    return source


def run_job(source: Source, chance: random.Random) -> Job:
    """What a faultless job makes of a source, read in some interleaving; windows still open stay inside."""
    job = Job()
    position = dict.fromkeys(source, 0)
    top: dict[int, int] = {}
    window: dict[tuple[str, int], list[int]] = defaultdict(list)
    watermark: int | None = None
    while left := [partition for partition in source if position[partition] < len(source[partition])]:
        partition = chance.choice(left)
        offset = position[partition]
        position[partition] += 1
        value = source[partition][offset]
        parsed = parse_visit(value)
        if parsed is None:
            job.rejected.append(Routed(partition, offset, value))
            continue
        start = parsed.event_time - parsed.event_time % WINDOW_MS
        if watermark is not None and start + WINDOW_MS - 1 <= watermark:
            job.late.append(Routed(partition, offset, value))
        else:
            window[parsed.visit_id, start].append(parsed.event_time)
        top[partition] = max(top.get(partition, parsed.event_time), parsed.event_time)
        if len(top) == len(source) and chance.random() < 0.7:  # watermarks are emitted now and then
            watermark = max(min(top.values()) - BOUND_MS - 1, watermark if watermark is not None else -(2**62))
            job.windows += _fire(window, watermark)
    if len(top) == len(source):
        job.windows += _fire(window, min(top.values()) - BOUND_MS - 1)
    return job


def _fire(window: dict[tuple[str, int], list[int]], watermark: int) -> list[VisitWindow]:
    closed = [key for key in window if key[1] + WINDOW_MS - 1 <= watermark]
    fired = []
    for visit_id, start in closed:
        times = window.pop((visit_id, start))
        fired.append(VisitWindow(visit_id, start, start + WINDOW_MS, len(times), min(times), max(times)))
    return fired


def judge_job(source: Source, job: Job) -> Verdict:
    """Fill the tables as the readers do, and judge."""
    with duckdb.connect(":memory:") as connection:
        create_tables(connection)
        with Appender(connection, "visits") as visits:
            for partition, values in source.items():
                for offset, value in enumerate(values):
                    found = parse_visit(value)
                    read = (None, None, None)
                    if found:
                        start = found.event_time - found.event_time % WINDOW_MS
                        read = (encode(found.visit_id), found.event_time, start)  # type: ignore[assignment]
                    visits.add(partition, offset, *read, record_digest(None, value))
        with Appender(connection, "windows") as windows:
            for offset, item in enumerate(job.windows):
                windows.add(
                    0, offset, encode(item.visit_id), item.window_start, item.count, item.first_event_time,
                    item.last_event_time,
                )  # fmt: skip
        for table, routed in (("late", job.late), ("rejected", job.rejected)):
            with Appender(connection, table) as rows:
                for offset, copy in enumerate(routed):
                    rows.add(0, offset, copy.partition, copy.offset, record_digest(None, copy.value))
        with Appender(connection, "malformed") as malformed:
            for offset, fault in enumerate(job.malformed):
                malformed.add(1, offset, fault)
        return judge(connection, FACTS)


def other_count(window: VisitWindow) -> VisitWindow:
    """The same window with one visit more."""
    return replace(window, count=window.count + 1)
