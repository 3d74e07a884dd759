"""Examples of what is wrong with the windowing job's output, each named so that it can be looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from contract.visit import iso_time
from verdict.flink_reader import decode
from verdict.model import EXAMPLES_PER_CATEGORY, Example
from verdict.store import rows

_FAULTS = {
    "headers": "does not say which record it stands for",
    "no source": "stands for a record that does not exist",
    "other bytes": "has another key or value than the record it stands for",
    "not late": "cannot have been late: no order of arrival puts the watermark past its window",
    "wrong kind": "",  # by topic, below
}
_WRONG_KIND = {"late": "stands for an unparsable record", "rejected": "stands for a proper visit"}


@dataclass(frozen=True)
class Names:
    """The topics of the job."""

    visits: str
    windows: str
    late: str
    rejected: str


def examples(connection: duckdb.DuckDBPyConnection, names: Names, window_ms: int) -> list[Example]:
    """Pick the first few of each kind from the judge's tables; at most EXAMPLES_PER_CATEGORY a category."""
    found = [
        *_absent(connection, "lost", window_ms),
        *_unrejected(connection, names),
        *_repeated(connection, names, window_ms),
        *_repeated_routed(connection, names),
        *_wrong(connection, names, window_ms),
        *_alien(connection, names, window_ms),
        *_malformed(connection, names),
        *_faulty_routed(connection, names),
        *_absent(connection, "pending", window_ms),
    ]
    shown: dict[str, int] = {}
    chosen = []
    for example in found:
        shown[example.category] = shown.get(example.category, 0) + 1
        if shown[example.category] <= EXAMPLES_PER_CATEGORY:
            chosen.append(example)
    return chosen


def _window(visit_id: object, start: object, window_ms: int) -> tuple[str, dict[str, object]]:
    begin = int(str(start))
    names: dict[str, object] = {
        "visit_id": decode(visit_id),
        "window_start": iso_time(begin),
        "window_end": iso_time(begin + window_ms),
    }
    return f"window {names['window_start']} of visit {names['visit_id']}", names


def _content(count: object, first: object, last: object) -> str:
    return f"{count} visits from {iso_time(int(str(first)))} to {iso_time(int(str(last)))}"


def _place(topic: str, partition: object, offset: object) -> tuple[str, dict[str, object]]:
    return f"{topic} partition {partition} offset {offset}", {"topic": topic, "partition": partition, "offset": offset}


def _absent(connection: duckdb.DuckDBPyConnection, category: str, window_ms: int) -> Iterator[Example]:
    for visit_id, start, *content, wrong in rows(
        connection,
        f"""SELECT visit_id, window_start, visit_count, first_event_time, last_event_time, wrong FROM window_fate
            WHERE {category} ORDER BY window_start, visit_id LIMIT {EXAMPLES_PER_CATEGORY}""",
    ):
        window, names = _window(visit_id, start, window_ms)
        if category == "pending":
            text = f"{window} is not due: {_content(*content)}"
        elif wrong:
            text = f"{window} is there with other content only; it must have {_content(*content)}"
        else:
            text = f"{window} is not there; it must have {_content(*content)}"
        yield Example(category, text, names)


def _unrejected(connection: duckdb.DuckDBPyConnection, names: Names) -> Iterator[Example]:
    for partition, offset in rows(
        connection, f"SELECT * FROM unrejected ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}"
    ):
        place, where = _place(names.visits, partition, offset)
        yield Example("lost", f"unparsable record {place} is not on {names.rejected}", where)


def _repeated(connection: duckdb.DuckDBPyConnection, names: Names, window_ms: int) -> Iterator[Example]:
    for visit_id, start, exact in rows(
        connection,
        f"""SELECT visit_id, window_start, exact FROM window_fate WHERE duplicated > 0
            ORDER BY window_start, visit_id LIMIT {EXAMPLES_PER_CATEGORY}""",
    ):
        window, about = _window(visit_id, start, window_ms)
        places = rows(
            connection,
            """SELECT kafka_partition, kafka_offset FROM seen WHERE visit_id = ? AND window_start = ? AND exact
               ORDER BY kafka_offset, kafka_partition LIMIT 3""",
            visit_id,
            start,
        )
        where = ", ".join(f"partition {partition} offset {offset}" for partition, offset in places)
        about |= _place(names.windows, *places[-1])[1]
        yield Example("duplicated", f"{window} is there {exact} times: {names.windows} {where}", about)


def _repeated_routed(connection: duckdb.DuckDBPyConnection, names: Names) -> Iterator[Example]:
    for table, topic in (("late", names.late), ("rejected", names.rejected)):
        for partition, offset, source_partition, source_offset, nth in rows(
            connection,
            f"""SELECT kafka_partition, kafka_offset, source_partition, source_offset, nth FROM {table}_fate
                WHERE fault IS NULL AND nth > 1 ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}""",
        ):
            source, about = _place(names.visits, source_partition, source_offset)
            place, _ = _place(topic, partition, offset)
            yield Example("duplicated", f"{source} is on {topic} again, as copy {nth}: {place}", about)


def _wrong(connection: duckdb.DuckDBPyConnection, names: Names, window_ms: int) -> Iterator[Example]:
    for visit_id, start, partition, offset, *figures in rows(
        connection,
        f"""SELECT visit_id, window_start, kafka_partition, kafka_offset,
                   seen.visit_count, seen.first_event_time, seen.last_event_time,
                   expected.visit_count, expected.first_event_time, expected.last_event_time
            FROM seen JOIN expected USING (visit_id, window_start) WHERE NOT exact
            ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}""",
    ):
        window, about = _window(visit_id, start, window_ms)
        place, where = _place(names.windows, partition, offset)
        text = f"{window} has {_content(*figures[:3])}, but recomputed it has {_content(*figures[3:])} ({place})"
        yield Example("unexpected", text, about | where)


def _alien(connection: duckdb.DuckDBPyConnection, names: Names, window_ms: int) -> Iterator[Example]:
    for visit_id, start, partition, offset in rows(
        connection,
        f"""SELECT visit_id, window_start, kafka_partition, kafka_offset FROM seen WHERE alien
            ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}""",
    ):
        window, about = _window(visit_id, start, window_ms)
        place, where = _place(names.windows, partition, offset)
        yield Example("unexpected", f"{window} has no visit in the source ({place})", about | where)


def _malformed(connection: duckdb.DuckDBPyConnection, names: Names) -> Iterator[Example]:
    for partition, offset, fault in rows(
        connection,
        f"SELECT * FROM malformed ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}",
    ):
        place, where = _place(names.windows, partition, offset)
        yield Example("unexpected", f"{place} {fault}", where)


def _faulty_routed(connection: duckdb.DuckDBPyConnection, names: Names) -> Iterator[Example]:
    for table, topic in (("late", names.late), ("rejected", names.rejected)):
        for partition, offset, source_partition, source_offset, visit_id, event_time, fault in rows(
            connection,
            f"""SELECT kafka_partition, kafka_offset, source_partition, source_offset, visit_id, event_time, fault
                FROM {table}_fate WHERE fault IS NOT NULL
                ORDER BY kafka_offset, kafka_partition LIMIT {EXAMPLES_PER_CATEGORY}""",
        ):
            place, about = _place(topic, partition, offset)
            what = _FAULTS[str(fault)] or _WRONG_KIND[table]
            source = ""
            if source_partition is not None:
                about |= {"source_partition": source_partition, "source_offset": source_offset}
                source = f" ({_place(names.visits, source_partition, source_offset)[0]})"
            if visit_id is not None:
                about |= {"visit_id": decode(visit_id), "event_time": iso_time(int(str(event_time)))}
                source += f", visit {about['visit_id']} of {about['event_time']}"
            yield Example("unexpected", f"{place} {what}{source}", about)
