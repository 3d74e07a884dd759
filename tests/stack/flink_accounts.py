"""Fate of every record of `visits`: counted in a window, late, rejected or not due yet, record by record.

The account is independent: it shares no code with the verdict. It works in memory, for small topics.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from faultline.formats.visit import iso_time, parse_visit

Where = tuple[int, int]


@dataclass(frozen=True)
class Topics:
    """Names of the four topics."""

    visits: str = "visits"
    windows: str = "visit_windows"
    late: str = "visits_late"
    rejected: str = "visits_rejected"


@dataclass
class Account:
    """Differences found, each as a short text; empty lists mean that every record is accounted for."""

    read: int = 0
    in_windows: int = 0
    late: int = 0
    rejected: int = 0
    pending: int = 0
    wrong: list[str] = field(default_factory=list)


def read_all(bootstrap: str, topic: str) -> list[Any]:
    """((partition, offset), key, value, timestamp, headers) of each committed record; in the order of each partition.

    A reader of the tests' own, since they judge those of the product.
    """
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"account-{uuid.uuid4()}", "isolation.level": "read_committed",
         "enable.auto.commit": False, "enable.partition.eof": True, "message.max.bytes": 10_000_000}
    )  # fmt: skip
    records: list[Any] = []
    partitions = [TopicPartition(topic, p, 0) for p in consumer.list_topics(topic, 60).topics[topic].partitions]
    consumer.assign(partitions)
    left = {each.partition for each in partitions}
    while left:
        message = consumer.poll(60)
        if message is None:
            raise AssertionError(f"{topic}: no end of partition within 60 s")
        error = message.error()
        if error is not None:
            # Other errors pass: the client tries again.
            if error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            continue
        headers: dict[str, Any] = dict(message.headers() or [])
        where = (message.partition(), message.offset())
        records.append((where, message.key(), message.value(), message.timestamp()[1], headers))
    consumer.close()
    return records


def late_by_rule(bootstrap: str, topic: str, window_seconds: int, bound_seconds: int) -> set[Where]:
    """The visits that are late while no partition is idle: those whose window their own partition has passed before."""
    size, bound = window_seconds * 1000, bound_seconds * 1000
    late: set[Where] = set()
    newest: dict[int, int] = {}
    for where, _, value, *_ in sorted(read_all(bootstrap, topic), key=lambda record: record[0]):
        visit = parse_visit(value)
        if visit is None:
            continue
        before = newest.get(where[0], visit.event_time)
        if visit.event_time // size * size + size <= before - bound:
            late.add(where)
        newest[where[0]] = max(before, visit.event_time)
    return late


def late_of(bootstrap: str, topics: Topics) -> set[Where]:
    """The visits on the late topic."""
    records = read_all(bootstrap, topics.late)
    return {(int(headers["source.partition"]), int(headers["source.offset"])) for *_, headers in records}


def account(bootstrap: str, window_seconds: int, bound_seconds: int, topics: Topics | None = None) -> Account:
    """Compare the four topics record by record and window by window."""
    names = topics or Topics()
    size = window_seconds * 1000
    result = Account()
    source = {where: record for where, *record in read_all(bootstrap, names.visits)}
    result.read = len(source)
    visits = {where: parse_visit(record[1]) for where, record in source.items()}
    refused: dict[str, Counter[Where]] = {}
    for name in (names.late, names.rejected):
        refused[name] = Counter()
        for _, key, value, timestamp, headers in read_all(bootstrap, name):
            where = (int(headers["source.partition"]), int(headers["source.offset"]))
            refused[name][where] += 1
            if [key, value, timestamp] != source[where][:3]:
                result.wrong.append(f"{name}: {where} came back changed")
            if not headers["reason"]:
                result.wrong.append(f"{name}: {where} has no reason")
            if (visits[where] is None) != (name == names.rejected):
                result.wrong.append(f"{name}: {where} does not belong there: {value!r:.200} {headers}")
    for name, counter in refused.items():
        result.wrong += [f"{name}: {where} is there {n} times" for where, n in counter.items() if n > 1]
    late, rejected = refused[names.late], refused[names.rejected]
    result.late, result.rejected = len(late), len(rejected)
    for where, visit in visits.items():
        if visit is None and where not in rejected:
            result.wrong.append(f"not rejected: {where} {source[where][1]!r:.300}")

    expected: dict[tuple[str, int], list[int]] = {}
    newest: dict[int, int] = {}
    for where, visit in visits.items():
        if visit is None:
            continue
        newest[where[0]] = max(newest.get(where[0], 0), visit.event_time)
        if where not in late:
            expected.setdefault((visit.visit_id, visit.event_time // size * size), []).append(visit.event_time)
    partitions = {where[0] for where in source}
    reached = min(newest.get(p, -1) for p in partitions) - bound_seconds * 1000 if partitions else 0
    closed = reached // size * size
    seen: Counter[tuple[str, int]] = Counter()
    for _, key, value, timestamp, _ in read_all(bootstrap, names.windows):
        document = json.loads(value or b"")
        times = {iso_time(start): start for _, start in expected}
        start = times.get(document["window_start"], -1)
        what = (document["visit_id"], start)
        seen[what] += 1
        members = expected.get(what)
        if members is None:
            result.wrong.append(f"a window of nothing: {document}")
            continue
        right = {
            "visit_id": what[0], "window_start": iso_time(start), "window_end": iso_time(start + size),
            "count": len(members),
            "first_event_time": iso_time(min(members)), "last_event_time": iso_time(max(members)),
        }  # fmt: skip
        if document != right or list(document) != list(right):
            result.wrong.append(f"window {document} should be {right}")
        if (key or b"").decode() != what[0] or timestamp != start + size - 1:
            result.wrong.append(f"window {document} has key {key!r} and timestamp {timestamp}")
        if seen[what] == 1:
            result.in_windows += len(members)
        else:
            result.wrong.append(f"window twice: {document}")
    for (visit_id, start), members in expected.items():
        if (visit_id, start) not in seen:
            result.pending += len(members)
            if start + size <= closed:
                result.wrong.append(
                    f"window missing: {visit_id} {iso_time(start)} of {len(members)}, closed {iso_time(closed)}"
                )
    if result.in_windows + result.late + result.rejected + result.pending != result.read:
        result.wrong.append("the sums differ")
    return result
