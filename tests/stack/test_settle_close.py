"""`python -m generator.close` and the start of the next generator, on real Kafka."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from faultline.formats.ledger import ledger_files
from faultline.formats.visit import CLOSING_PREFIX, parse_event_time
from generator.event_times import clocks_of, last_closing
from generator.topic import Span, look_at
from tests.called import program
from tests.stack.broker import Broker
from tests.stack.flink_accounts import read_all

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]
PAST = ["--start", "2026-01-01T00:00:00Z", "--rate", "0", "--event-rate", "100"]
START_MS = 1_767_225_600_000


def run(broker: Broker, home: Path, topic: str, module: str, *flags: str) -> subprocess.CompletedProcess[str]:
    where = {"STACK_KAFKA_BOOTSTRAP": broker.bootstrap, "STACK_VISITS_TOPIC": topic, "STACK_HOME": str(home)}
    return program(module, *flags, **where)


def close(broker: Broker, home: Path, topic: str) -> dict[str, Any]:
    done = run(broker, home, topic, "generator.close")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("close: ") and done.stderr.count("\n") == done.stdout.count("\n") == 1
    return dict(json.loads(done.stdout))


def send(broker: Broker, home: Path, topic: str, *flags: str) -> str:
    """Run the generator to its end and return its words."""
    done = run(broker, home, topic, "generator", *flags)
    assert done.returncode == 0, done.stderr
    return done.stderr


def read(broker: Broker, topic: str, partitions: int) -> list[list[tuple[str, int]]]:
    """Return visit_id and timestamp of the records of each partition, in order; key, value and timestamp agree."""
    found: list[list[tuple[str, int]]] = [[] for _ in range(partitions)]
    for (partition, _), key, value, timestamp, _ in read_all(broker.bootstrap, topic):
        visit = json.loads(value)
        assert visit["visit_id"] == key.decode()
        assert parse_event_time(visit["event_time"]) == timestamp
        found[partition].append((visit["visit_id"], timestamp))
    return found


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_two_visits_in_each_partition_close_the_last_window(broker: Broker, tmp_path: Path, partitions: int) -> None:
    topic = f"close_{partitions}"
    broker.create_topics(topic, partitions=partitions)
    send(broker, tmp_path, topic, *PAST, "--total", "1500")
    before = read(broker, topic, partitions)
    newest = max(timestamp for records in before for _, timestamp in records)
    # 1500 records at 100 a second of event time: the last window begins 10 s after the start.
    assert START_MS + 10_000 < newest < START_MS + 20_000
    result = close(broker, tmp_path, topic)
    assert result == {"closed_to": "2026-01-01T00:00:20.000Z", "sent": 2 * partitions, "acknowledged": 2 * partitions}
    for old, new in zip(before, read(broker, topic, partitions), strict=True):
        first, second = new[len(old) :]
        assert new[: len(old)] == old
        # The end of the window and the bound of out-of-orderness, and a millisecond later.
        assert (first[1], second[1]) == (START_MS + 25_000, START_MS + 25_001)
        assert first[0].startswith(CLOSING_PREFIX) and second[0].startswith(CLOSING_PREFIX)
    assert len(ledger_files(tmp_path / "ledger", topic)) == 2
    assert ledger_files(tmp_path / "ledger", topic)[1].read_text().count("\nacked,") == 2 * partitions


def test_what_is_closed_is_not_closed_again(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("close_twice")
    send(broker, tmp_path, "close_twice", *PAST, "--total", "500")
    first = close(broker, tmp_path, "close_twice")
    records = read(broker, "close_twice", 2)
    assert close(broker, tmp_path, "close_twice") == {"closed_to": first["closed_to"], "sent": 0, "acknowledged": 0}
    assert read(broker, "close_twice", 2) == records
    assert len(ledger_files(tmp_path / "ledger", "close_twice")) == 2
    # A visit that came later is closed as well, even one that is older than the closing visits.
    send(broker, tmp_path, "close_twice", "--start", "2026-01-01T00:00:09Z", "--total", "1")
    assert close(broker, tmp_path, "close_twice")["sent"] == 4
    assert close(broker, tmp_path, "close_twice")["sent"] == 0


def test_a_visit_ahead_of_its_timestamp_is_closed_too(broker: Broker, tmp_path: Path) -> None:
    topic = "close_ahead"
    broker.create_topics(topic)
    send(broker, tmp_path, topic, *PAST, "--total", "500")
    close(broker, tmp_path, topic)
    ahead = json.dumps({"visit_id": "typed", "event_time": "2026-01-01T00:01:30Z"}).encode()
    broken = b'{"visit_id":"typed"'
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for value, partition in ((ahead, 0), (broken, 1)):
        # As kafka-console-producer.sh does: no key, and the time of sending.
        producer.produce(topic, value, partition=partition)
    producer.flush()
    done = run(broker, tmp_path, topic, "generator.close")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "partition 0 is 74.999 s ahead of the others" in done.stderr
    result = json.loads(done.stdout)
    assert result == {"closed_to": "2026-01-01T00:01:40.000Z", "sent": 4, "acknowledged": 4}
    assert close(broker, tmp_path, topic) == result | {"sent": 0, "acknowledged": 0}


def test_a_visit_after_which_none_can_be_is_named_and_stays_open(broker: Broker, tmp_path: Path) -> None:
    topic = "close_last_year"
    broker.create_topics(topic)
    send(broker, tmp_path, topic, *PAST, "--total", "500")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    last = json.dumps({"visit_id": "typed", "event_time": "9998-12-31T23:59:59.999Z"}).encode()
    producer.produce(topic, last, partition=1)
    producer.flush()
    done = run(broker, tmp_path, topic, "generator.close")
    assert done.returncode == 0
    assert "still open are the windows of visits after 9998-01-01" in done.stderr
    assert "1 in partition 1 from offset" in done.stderr
    assert json.loads(done.stdout)["closed_to"] == "2026-01-01T00:00:10.000Z"


def test_an_empty_topic_is_one_line(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("close_empty")
    done = run(broker, tmp_path, "close_empty", "generator.close")
    assert (done.returncode, done.stdout) == (2, "")
    assert "topic close_empty has no visit" in done.stderr and done.stderr.count("\n") == 1
    assert ledger_files(tmp_path / "ledger", "close_empty") == []


@pytest.mark.parametrize(
    ("settings", "flags", "words"),
    [
        ({"STACK_KAFKA_BOOTSTRAP": "127.0.0.1:9"}, ["--wait-seconds", "0.5"], "Kafka at 127.0.0.1:9 does not answer"),
        ({"STACK_VISITS_TOPIC": "close_nowhere"}, ["--wait-seconds", "0.5"], "topic close_nowhere"),
        ({}, ["--wait-seconds", "soon"], "invalid float value"),
        ({"STACK_FLINK_WINDOW_SECONDS": "ten"}, [], "FLINK_WINDOW_SECONDS='ten' is not a whole number"),
        ({"STACK_FLINK_WINDOW_SECONDS": "0"}, [], "FLINK_WINDOW_SECONDS=0"),
    ],
)
def test_a_mistake_is_one_line(
    broker: Broker, tmp_path: Path, settings: dict[str, str], flags: list[str], words: str
) -> None:
    # A home of its own: in the clone's, the job that ran last may have said how long its windows are.
    environ = {"STACK_KAFKA_BOOTSTRAP": broker.bootstrap, "STACK_HOME": str(tmp_path), **settings}
    done = program("generator.close", *flags, **environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("close: ") and done.stderr.count("\n") == 1
    assert words in done.stderr


def test_the_next_generator_starts_beyond_the_newest_event_time(broker: Broker, tmp_path: Path) -> None:
    topic = "close_then_start"
    broker.create_topics(topic)
    words = send(broker, tmp_path, topic, "--rate", "0", "--event-rate", "10", "--total", "1000")
    assert "beyond" not in words
    close(broker, tmp_path, topic)
    before = read(broker, topic, 2)
    newest = max(timestamp for records in before for _, timestamp in records)
    # 100 s of event time were sent at once, so now is older than the topic.
    words = send(broker, tmp_path, topic, "--rate", "0", "--total", "200")
    assert "beyond the newest event time in the topic" in words
    after = [new[len(old) :] for old, new in zip(before, read(broker, topic, 2), strict=True)]
    assert sum(map(len, after)) == 200
    assert all(newest < timestamp <= newest + 10_000 for records in after for _, timestamp in records)
    # A start that is given stays.
    words = send(broker, tmp_path, topic, "--start", "2026-01-01T00:00:00Z", "--total", "1")
    assert "from 2026-01-01T00:00:00.000Z\n" in words


def test_only_what_came_since_the_last_closing_visits_is_read(broker: Broker, tmp_path: Path) -> None:
    topic = "close_since"
    broker.create_topics(topic)
    send(broker, tmp_path, topic, *PAST, "--total", "500")
    close(broker, tmp_path, topic)
    later = ["--start", "2026-01-01T00:01:00Z", *PAST[2:]]
    send(broker, tmp_path, topic, *later, "--total", "40")
    with look_at(broker.bootstrap, topic) as seen:
        ends = {partition: span.end for partition, span in seen.spans().items()}
        begins = last_closing(tmp_path / "ledger", seen)
        read_again = sum(1 for _ in seen.read({p: Span(begin, ends[p]) for p, begin in begins.items()}))
        clocks = clocks_of(seen, tmp_path / "ledger")
        every = clocks_of(seen, tmp_path / "no-ledgers")
    # The last closing visit of each partition, and the 40.
    assert read_again == 42
    assert clocks == every
    closed = close(broker, tmp_path, topic)
    assert closed["closed_to"] == "2026-01-01T00:01:10.000Z"


def test_a_ledger_of_records_that_the_topic_lacks_is_no_help(broker: Broker, tmp_path: Path) -> None:
    topic = "close_lacks"
    broker.create_topics(topic)
    send(broker, tmp_path, topic, *PAST, "--total", "300")
    close(broker, tmp_path, topic)
    newest = ledger_files(tmp_path / "ledger", topic)[-1]
    lines = newest.read_text().splitlines()
    # Offsets beyond the end, and offsets of visits that close nothing.
    for offset in ("99999", "0"):
        changed = [
            ",".join((*row[:3], offset, *row[4:])) if row[0] == "acked" else ",".join(row)
            for row in (line.split(",") for line in lines)
        ]
        newest.write_text("\n".join(changed) + "\nacked,9")
        with look_at(broker.bootstrap, topic) as seen:
            assert clocks_of(seen, tmp_path / "ledger") == clocks_of(seen, tmp_path / "no-ledgers")
