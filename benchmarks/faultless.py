"""Write a source and the outputs of faultless pipelines, as fast as this machine can: input for the verdict.

Usage: python -m benchmarks.faultless VISITS VISITS_PER_ID VALUE_BYTES

Fills the topics `visits` and `visit_windows`, commits the job's consumer group, and writes the output and the
checkpoint of the synchronizer. Event times increase, so nothing is late; closing visits close every window. Prints how
many visits and windows were acknowledged, and how many lines were written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from faultline.formats.run import SPARK_RUN_FILE, SparkRun, as_json
from faultline.formats.visit import iso_time, parse_event_time
from faultline.settings import Settings
from faultline.storage.data import noted
from faultline.waiting import attempts
from generator.close import closing_id
from generator.sender import partition_of

START = parse_event_time("2026-01-01T00:00:00Z") or 0
STEP_MS = 2
FILE_LINES = 250_000
COMMIT_SECONDS = 30


def window_json(visit_id: str, start: int, end: int, times: list[int]) -> bytes:
    """Write a window as the job does; `start` and `end` in ms, `times` the event times of its visits in ms."""
    return json.dumps(
        {
            "visit_id": visit_id,
            "window_start": iso_time(start),
            "window_end": iso_time(end),
            "count": len(times),
            "first_event_time": iso_time(min(times)),
            "last_event_time": iso_time(max(times)),
        }
    ).encode()


class Topics:
    """A producer that counts what the broker has acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                # Retries with a broker that has just started do not matter; missing acknowledgements are counted.
                "log_level": 3,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 50,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 500_000,
                # As the JVM clients choose it, so that a key has the same partition as with the generator.
                "partitioner": "murmur2_random",
            }
        )

    def send(self, topic: str, key: bytes, value: bytes, timestamp: int) -> None:
        """Hand over a record; waits while too many are in flight."""
        while True:
            try:
                self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=self._count)
                return
            except BufferError:
                self._producer.poll(0.1)

    def poll(self, seconds: float = 0) -> None:
        """Take the acknowledgements that have come; without one, wait for the first one so long."""
        self._producer.poll(seconds)

    def flush(self) -> None:
        """Wait for all acknowledgements."""
        self._producer.flush()

    def _count(self, error: object, message: Any) -> None:
        if error is None:
            self.acknowledged[message.topic()] = self.acknowledged.get(message.topic(), 0) + 1


class Lines:
    """The synchronizer's output of one batch: files of the partitions' lines, and the sink's log of them."""

    def __init__(self, settings: Settings, topic: str) -> None:
        query = settings.query("files")
        self._settings, self._topic = settings, topic
        self._output, self._checkpoint = settings.home / "output" / query, settings.spark_notes / query
        self._open: dict[int, tuple[IO[bytes], Path, int]] = {}
        self._files: list[Path] = []
        self.written = 0
        self._output.mkdir(parents=True)

    def add(self, partition: int, line: bytes) -> None:
        """Write a line of a partition; a new file begins after FILE_LINES lines."""
        file, path, count = self._open.get(partition) or self._begin(partition)
        file.write(line + b"\n")
        self.written += 1
        self._open[partition] = (file, path, count + 1)
        if count + 1 == FILE_LINES:
            file.close()
            del self._open[partition]

    def _begin(self, partition: int) -> tuple[IO[bytes], Path, int]:
        number = len(self._files)
        path = self._output / f"part-{partition:05d}-{UUID(int=number, version=4)}-c000.txt"
        self._files.append(path)
        return path.open("wb", buffering=1 << 20), path, 0

    def commit(self, ends: dict[int, int]) -> None:
        """Write the log of the sink and the checkpoint, with all lines in batch 0."""
        for file, _, _ in self._open.values():
            file.close()
        entries = [
            json.dumps({"path": path.as_uri(), "size": path.stat().st_size, "isDir": False, "action": "add"})
            for path in self._files
        ]
        run = SparkRun(
            topic=self._topic,
            sink="files",
            output=noted(self._output, self._settings),
            checkpoint=noted(self._checkpoint, self._settings),
        )
        offsets = json.dumps({self._topic: {str(partition): end for partition, end in ends.items()}})
        for path, text in (
            (self._output / "_spark_metadata" / "0", "\n".join(["v1", *entries])),
            (self._checkpoint / "offsets" / "0", f"v1\n{{}}\n{offsets}"),
            (self._checkpoint / "commits" / "0", "v1\n{}"),
            (self._checkpoint / SPARK_RUN_FILE, as_json(run)),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def visits(total: int, visits_per_id: int) -> Iterator[tuple[str, int]]:
    """Yield visit_id and event time of each visit; the visits of one id follow each other."""
    for number in range(total):
        yield f"00000000-0000-4000-8000-{number // visits_per_id:012x}", START + number * STEP_MS


def closing_visits(partitions: int, moment: int) -> Iterator[tuple[str, int]]:
    """Yield two closing visits for each partition."""
    for later in (0, 1):
        for wanted in range(partitions):
            yield closing_id(wanted, partitions, "faultless"), moment + later


def main() -> int:
    """Run the command line; returns the exit code."""
    total, visits_per_id, value_bytes = (int(argument) for argument in sys.argv[1:4])
    settings = Settings()
    source, target = settings.text("VISITS_TOPIC"), settings.text("VISIT_WINDOWS_TOPIC")
    partitions, window_ms = settings.number("TOPIC_PARTITIONS"), settings.number("FLINK_WINDOW_SECONDS") * 1000
    topics, lines = Topics(settings.bootstrap), Lines(settings, source)
    filler = "x" * max(0, value_bytes - 107)
    ends = dict.fromkeys(range(partitions), 0)

    def send(visit_id: str, moment: int) -> None:
        key = visit_id.encode()
        value = f'{{"visit_id":"{visit_id}","event_time":"{iso_time(moment)}","page":"{filler}"}}'.encode()
        partition = partition_of(key, partitions)
        topics.send(source, key, value, moment)
        lines.add(partition, value)
        ends[partition] += 1

    def fire(visit_id: str, end: int, times: list[int]) -> None:
        topics.send(target, visit_id.encode(), window_json(visit_id, end - window_ms, end, times), end - 1)

    windows, group, times = 0, ("", 0), [0]
    for number, (visit_id, moment) in enumerate(visits(total, visits_per_id)):
        send(visit_id, moment)
        mine = (visit_id, moment - moment % window_ms + window_ms)
        if mine == group:
            times.append(moment)
        else:
            if number:
                fire(*group, times)
                windows += 1
            group, times = mine, [moment]
        if number % 1000 == 0:
            topics.poll()
        if number % 1_000_000 == 0:
            print(f"faultless: {number:,} of {total:,}", file=sys.stderr)
    fire(*group, times)
    closing = group[1] + settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000
    for visit_id, moment in closing_visits(partitions, closing):
        send(visit_id, moment)
    topics.flush()
    lines.commit(ends)
    _commit_group(settings, source, ends)
    sent = topics.acknowledged.get(source, 0)
    print(sent, topics.acknowledged.get(target, 0), lines.written)
    return 0 if (sent, topics.acknowledged.get(target, 0)) == (sum(ends.values()), windows + 1) else 1


def _commit_group(settings: Settings, topic: str, ends: dict[int, int]) -> None:
    group = settings.text("FLINK_GROUP_ID")
    offsets = [TopicPartition(topic, partition, end) for partition, end in ends.items()]
    admin = AdminClient({"bootstrap.servers": settings.bootstrap})
    # A broker that has just started creates its offsets topic first.
    for _ in attempts(COMMIT_SECONDS, 0.5):
        answer = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)])[group].result(30)
        errors = [item.error for item in answer.topic_partitions or [] if item.error is not None]
        if not errors:
            return
    raise SystemExit(f"faultless: the offsets of group {group} cannot be committed: {errors[0].str()}")


if __name__ == "__main__":
    sys.exit(main())
