"""Every fault in the windowing job's output, with its place so that it can be looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from faultline.formats.verdict import Finding
from faultline.formats.visit import iso_time
from faultline.verdict.escape import printable
from faultline.verdict.flink.reader import decode
from faultline.verdict.store import Store

_FAULTS = {
    "headers": "does not name its source record with the three headers, each once",
    "no source": "names a source record that does not exist",
    "other bytes": "has another key or value than its source record",
    "other timestamp": "has another timestamp than its source record",
    "other reason": "has a reason that does not apply to its source record",
    "other partition": "is not in the partition of its key",
    "not late": "cannot have been late: its partition had not passed its window, and was not idle since visits on time",
}
_WRONG_KIND = {"late": "names an unparsable record", "rejected": "names a valid visit"}


@dataclass(frozen=True)
class Names:
    """The topics of the job."""

    visits: str
    windows: str
    late: str
    rejected: str

    def routed(self) -> tuple[tuple[str, str], ...]:
        """Return the tables of the records that are set aside, and their topics."""
        return ("late", self.late), ("rejected", self.rejected)


def all_findings(store: Store, names: Names, window_ms: int, category: str) -> Iterator[Finding]:
    """Yield everything that a category counts, in a fixed order."""
    for find in _FINDERS[category]:
        yield from find(store, names, window_ms)


def _window(visit_id: object, window_end: object, window_ms: int) -> tuple[str, dict[str, object]]:
    end, text = int(str(window_end)), decode(visit_id)
    names: dict[str, object] = {
        "visit_id": text,
        "window_start": iso_time(end - window_ms),
        "window_end": iso_time(end),
    }
    return f"window {names['window_start']} of visit {printable(text)}", names


def _content(count: object, first: object, last: object) -> str:
    visits = "1 visit" if count == 1 else f"{count} visits"
    return f"{visits} from {iso_time(int(str(first)))} to {iso_time(int(str(last)))}"


def _place(topic: str, partition: object, offset: object) -> tuple[str, dict[str, object]]:
    return f"{topic} partition {partition} offset {offset}", {"topic": topic, "partition": partition, "offset": offset}


def _absent(category: str) -> Callable[[Store, Names, int], Iterator[Finding]]:
    condition = "lost" if category == "lost" else "pending AND NOT fate.closing"

    def find(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
        for visit_id, end, *content, wrong in store.stream(
            f"""SELECT visits.visit_id, fate.window_end, visit_count, first_event_time, last_event_time, wrong
                FROM window_fate AS fate JOIN visits
                  ON kafka_partition = place >> 48 AND kafka_offset = place & 281474976710655
                WHERE {condition} ORDER BY fate.window_end, place"""
        ):
            window, about = _window(visit_id, end, window_ms)
            if category == "pending":
                text = f"{window} is not due: {_content(*content)}"
            elif wrong:
                text = (
                    f"{window} is there only with other content or at a wrong place; it must have {_content(*content)}"
                )
            else:
                text = f"{window} is not there; it must have {_content(*content)}"
            yield Finding(category, text, about)

    return find


def _missing(category: str) -> Callable[[Store, Names, int], Iterator[Finding]]:
    condition = "NOT pending" if category == "lost" else "pending"

    def find(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
        for table, topic in names.routed():
            for partition, offset, visit_id, event_time in store.stream(
                f"""SELECT kafka_partition, kafka_offset, visit_id, event_time
                    FROM missing_{table} JOIN visits USING (kafka_partition, kafka_offset)
                    WHERE {condition} ORDER BY kafka_offset, kafka_partition"""
            ):
                place, about = _place(names.visits, partition, offset)
                what = "unparsable record"
                if visit_id is not None:
                    about |= {"visit_id": decode(visit_id), "event_time": iso_time(int(str(event_time)))}
                    what = f"late visit {printable(decode(visit_id))} of {about['event_time']},"
                yield Finding(category, f"{what} {place} is not on {topic} as it was sent", about)

    return find


def _repeated(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:
    for visit_id, end, exact, partitions, offsets in store.stream(
        """SELECT any_value(windows.visit_id), fate.window_end, any_value(fate.exact),
                  list(kafka_partition ORDER BY kafka_offset), list(kafka_offset ORDER BY kafka_offset)
           FROM window_fate AS fate JOIN windows USING (visit, window_end)
           ANTI JOIN wrong USING (visit, window_end, kafka_partition, kafka_offset)
           WHERE duplicated > 0 AND windows.fault IS NULL GROUP BY fate.visit, fate.window_end ORDER BY ALL"""
    ):
        window, about = _window(visit_id, end, window_ms)
        assert isinstance(partitions, list)
        assert isinstance(offsets, list)
        places = [
            f"partition {partition} offset {offset}" for partition, offset in zip(partitions, offsets, strict=True)
        ]
        about |= _place(names.windows, partitions[-1], offsets[-1])[1] | {"copies": len(places)}
        more = ", ..." if len(places) > 3 else ""
        yield Finding(
            "duplicated", f"{window} is there {exact} times: {names.windows} {', '.join(places[:3])}{more}", about
        )


def _repeated_routed(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
    for table, topic in names.routed():
        for partition, offset, source_partition, source_offset, nth in store.stream(
            f"""SELECT kafka_partition, kafka_offset, source_partition, source_offset, nth FROM {table}_fate
                WHERE fault IS NULL AND nth > 1 ORDER BY kafka_offset, kafka_partition"""
        ):
            source, about = _place(names.visits, source_partition, source_offset)
            place, _ = _place(topic, partition, offset)
            yield Finding("duplicated", f"{source} is on {topic} again, as copy {nth}: {place}", about)


def _wrong(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:
    for visit_id, end, partition, offset, alien, misplaced, early, *figures in store.stream(
        """SELECT windows.visit_id, wrong.window_end, kafka_partition, kafka_offset, alien, misplaced, early,
                  windows.visit_count, windows.first_event_time, windows.last_event_time,
                  suspect.visit_count, suspect.first_event_time, suspect.last_event_time
           FROM wrong JOIN windows USING (visit, window_end, kafka_partition, kafka_offset)
           LEFT JOIN suspect ON suspect.visit = wrong.visit AND suspect.window_end = wrong.window_end
           ORDER BY kafka_offset, kafka_partition"""
    ):
        window, about = _window(visit_id, end, window_ms)
        place, where = _place(names.windows, partition, offset)
        if alien:
            text = f"{window} has no visit in the source ({place})"
        elif early:
            text = f"{window} is there, and no visit of the source closes it ({place})"
        elif misplaced:
            text = f"{window} is not in the partition of its key ({place})"
        else:
            text = f"{window} has {_content(*figures[:3])}, but recomputed it has {_content(*figures[3:])} ({place})"
        yield Finding("unexpected", text, about | where)


def _malformed(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
    for partition, offset, fault in store.stream(
        """SELECT kafka_partition, kafka_offset, fault FROM windows WHERE fault IS NOT NULL
           ORDER BY kafka_offset, kafka_partition"""
    ):
        place, where = _place(names.windows, partition, offset)
        yield Finding("unexpected", f"{place} {fault}", where)


def _faulty_routed(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
    for table, topic in names.routed():
        for partition, offset, source_partition, source_offset, visit_id, event_time, fault in store.stream(
            f"""SELECT kafka_partition, kafka_offset, source_partition, source_offset, visit_id, event_time, fault
                FROM {table}_fate WHERE fault IS NOT NULL ORDER BY kafka_offset, kafka_partition"""
        ):
            place, about = _place(topic, partition, offset)
            what = _WRONG_KIND[table] if fault == "wrong kind" else _FAULTS[str(fault)]
            source = ""
            if source_partition is not None:
                about |= {"source_partition": source_partition, "source_offset": source_offset}
                source = f" ({_place(names.visits, source_partition, source_offset)[0]})"
            if visit_id is not None:
                about |= {"visit_id": decode(visit_id), "event_time": iso_time(int(str(event_time)))}
                source += f", visit {printable(decode(visit_id))} of {about['event_time']}"
            yield Finding("unexpected", f"{place} {what}{source}", about)


def _disordered(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:
    for visit_id, end, partition, offset in store.stream(
        """SELECT windows.visit_id, window_end, kafka_partition, kafka_offset
           FROM disordered JOIN windows USING (visit, window_end, kafka_partition, kafka_offset)
           ORDER BY kafka_offset, kafka_partition"""
    ):
        window, about = _window(visit_id, end, window_ms)
        place, where = _place(names.windows, partition, offset)
        yield Finding("disordered", f"{window} comes after a later window of the same visit ({place})", about | where)


def _disordered_routed(store: Store, names: Names, window_ms: int) -> Iterator[Finding]:  # noqa: ARG001
    for table, topic in names.routed():
        for partition, offset, source_partition, source_offset in store.stream(
            f"""SELECT kafka_partition, kafka_offset, source_partition, source_offset
                FROM {table}_disordered JOIN {table}_fate USING (kafka_partition, kafka_offset)
                ORDER BY kafka_offset, kafka_partition"""
        ):
            source, about = _place(names.visits, source_partition, source_offset)
            place, _ = _place(topic, partition, offset)
            yield Finding("disordered", f"{source} comes after a later record with its key: {place}", about)


_FINDERS: dict[str, tuple[Callable[[Store, Names, int], Iterator[Finding]], ...]] = {
    "lost": (_absent("lost"), _missing("lost")),
    "duplicated": (_repeated, _repeated_routed),
    "unexpected": (_wrong, _malformed, _faulty_routed),
    "disordered": (_disordered, _disordered_routed),
    "pending": (_absent("pending"), _missing("pending")),
}
