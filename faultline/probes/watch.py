"""Watch a stack while it is broken: samples twice a second, and a reader of committed windows that never stops.

Usage: python -m faultline.probes.watch FOLDER [--limit SECONDS]

Writes JSON lines to FOLDER until the file `stop` appears there, or after the limit; a second watcher goes on where the
first one ended. Each line has `at`, in seconds since the epoch; what does not answer is
`{"at": ..., "unknown": "..."}`.

    kafka.jsonl  visits (end offsets by partition), windows, stable (the last stable offsets), group (Flink's)
    flink.jsonl  as flink_job.status; position (how far the job has read, by partition; empty until Flink's answer is
                 recent), restored_at (ms), and checkpoints: id, at (ms), milliseconds and bytes of those that were
                 completed since the last line
    spark.jsonl  batch (the newest committed), committed_at, offsets (its end, by partition); planned: the batch that is
                 planned and not committed, if there is one; again: the batch that a new run of the query takes up
                 again, if it does
    seen.jsonl   partition, offset and digest of each committed window, as it came
    begin.json   the offset of each partition of the windows' topic from which the reader reads
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from faultline.command import Flags, run
from faultline.formats.digest import record_digest
from faultline.formats.run import SPARK_RUN_FILE
from faultline.probes.batches import newest_batches
from faultline.settings import Settings
from faultline.storage.data import spark_checkpoints
from faultline.topic_reader import reader
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from flink_job.position import Recent, position
from flink_job.rest import checkpoints
from flink_job.status import newest_job, status_of

INTERVAL_SECONDS = 0.5
_WINDOWS = 5000
_STOP = "stop"
BEGIN = "begin.json"

Sample = Callable[[], dict[str, Any]]
Make = Callable[[], Sample]


def kafka_sample(settings: Settings) -> Sample:
    """Sample the offsets of both topics, and those that the Flink job has committed."""
    cluster = Cluster(settings.bootstrap)
    visits, windows = settings.text("VISITS_TOPIC"), settings.text("VISIT_WINDOWS_TOPIC")
    group = settings.text("FLINK_GROUP_ID")

    def sample() -> dict[str, Any]:
        return {
            "stable": _ends(cluster, windows, committed=True),
            "windows": _ends(cluster, windows, committed=False),
            "group": cluster.group_offsets(group, visits),
            "visits": _ends(cluster, visits, committed=False),
        }

    return sample


def _ends(cluster: Cluster, topic: str, *, committed: bool) -> dict[int, int]:
    return {partition: span.end for partition, span in cluster.spans(topic, committed=committed).items()}


def flink_sample(settings: Settings) -> Sample:
    """Sample the state of the job, its position, and its completed checkpoints."""
    base, topic = settings.flink_rest, settings.text("VISITS_TOPIC")
    sampled: set[tuple[str, int]] = set()
    recent = Recent()

    def sample() -> dict[str, Any]:
        job = newest_job(base, settings.text("FLINK_JOB_NAME"))
        if job is None:
            raise Unknown("no job")
        statistics = checkpoints(base, job["jid"])
        completed = [each for each in statistics["history"] if each["status"] == "COMPLETED"]
        new = [each for each in reversed(completed) if (job["jid"], each["id"]) not in sampled]
        restored_at = (statistics["latest"]["restored"] or {}).get("restore_timestamp")
        # While tasks start, Flink still has the metrics of those that ended.
        attempt = (job["jid"], restored_at) if _runs(job) else None
        read = position(base, job["jid"], topic) if attempt else {}
        found = {
            **asdict(status_of(base, job, statistics)),
            "restored_at": restored_at,
            "position": read if recent.is_recent(attempt, time.monotonic()) else {},
            "checkpoints": [
                {
                    "id": each["id"], "at": each["latest_ack_timestamp"], "milliseconds": each["end_to_end_duration"],
                    "bytes": each["state_size"],
                }
                for each in new
            ],
        }  # fmt: skip
        sampled.update((job["jid"], each["id"]) for each in new)
        return found

    return sample


def _runs(job: dict[str, Any]) -> bool:
    return bool(job["tasks"]["running"] == job["tasks"]["total"])


def spark_sample(settings: Settings) -> Sample:
    """Sample the newest batches of the synchronizer."""
    query = settings.query()
    checkpoint = spark_checkpoints(settings) / query
    run_file = settings.spark_notes / query / SPARK_RUN_FILE
    return lambda: newest_batches(checkpoint, run_file)


def samplers(settings: Settings) -> dict[str, Callable[[], Sample]]:
    """Return a function that makes each sampler, by the name of its samples."""
    return {
        "kafka": lambda: kafka_sample(settings),
        "flink": lambda: flink_sample(settings),
        "spark": lambda: spark_sample(settings),
    }


class Sampler:
    """A sampler that is made when it is needed first, and again when another stack is up."""

    def __init__(self, make: Make, which: Callable[[], object] = bool) -> None:
        self._make, self._which = make, which
        self._sample: Sample | None = None
        self._made_for: object = None

    def __call__(self) -> dict[str, Any]:
        """Sample once."""
        which = self._which()
        if self._sample is None or which != self._made_for:
            # While no stack is up it cannot be made; the next one is another stack, though it looks alike.
            self._sample = None
            self._sample, self._made_for = self._make(), which
        return self._sample()


def sample_once(sample: Sample) -> dict[str, Any]:
    """Return one sample with its time; `unknown` says why there is none."""
    begin = time.time()
    try:
        found = sample()
    except Exception as error:  # whatever it is, the next sample may be one
        return {"at": begin, "unknown": str(error) or type(error).__name__}
    # The time of the answer: a frozen service may take long to give it.
    return {"at": time.time(), **found}


def take(sample: Sample, file: Path, stopped: Callable[[], bool]) -> None:
    """Write samples until it is time to stop."""
    with file.open("a", encoding="utf-8") as out:
        while not stopped():
            begin = time.time()
            out.write(json.dumps(sample_once(sample)) + "\n")
            out.flush()
            time.sleep(max(0.0, begin + INTERVAL_SECONDS - time.time()))


def windows_sample(settings: Settings) -> Sample:
    """Sample how many committed windows have come since the last sample, from the present end of the topic on."""
    consumer = _window_reader(settings, _window_ends(settings), queued_max_messages_kbytes=1024)
    return lambda: {"count": sum(message.error() is None for message in consumer.consume(_WINDOWS, timeout=0.1))}


def _window_ends(settings: Settings) -> dict[int, int]:
    """The present end of the committed windows, by partition."""
    spans = Cluster(settings.bootstrap).spans(settings.text("VISIT_WINDOWS_TOPIC"), committed=True)
    return {partition: span.end for partition, span in spans.items()}


def _window_reader(settings: Settings, begins: dict[int, int], **client: object) -> Consumer:
    """A reader of committed windows from these offsets on."""
    topic = settings.text("VISIT_WINDOWS_TOPIC")
    # After a failure the client asks again which broker leads a partition; its default, 5 minutes, outlasts a recovery.
    consumer = reader(settings.bootstrap, committed=True, topic_metadata_refresh_interval_ms=2_000, **client)
    consumer.assign([TopicPartition(topic, partition, begin) for partition, begin in begins.items()])
    return consumer


def read_windows(settings: Settings, file: Path, stopped: Callable[[], bool]) -> None:
    """Write a line for each committed window that comes: those after the last in `file`, or after the present end."""
    begins = begin_of(file.parent)
    if begins is None:
        begins = _window_ends(settings)
        (file.parent / BEGIN).write_text(json.dumps(begins), encoding="utf-8")
    consumer = _window_reader(settings, begins | read_up_to(file))
    try:
        with file.open("a", encoding="utf-8") as out:
            while not stopped():
                for message in consumer.consume(500, INTERVAL_SECONDS):
                    if (error := message.error()) is None:
                        out.write(json.dumps(_seen(message)) + "\n")
                    else:
                        # It reads on by itself; if it does not, these lines say since when.
                        sys.stderr.write(f"watch: {time.time():.1f} {error.str()}\n")
                out.flush()
    finally:
        consumer.close()


def begin_of(folder: Path) -> dict[int, int] | None:
    """The offset of each partition from which the first watcher of the folder has read; None before there is one."""
    file = folder / BEGIN
    if not file.exists():
        return None
    return {int(partition): offset for partition, offset in json.loads(file.read_text(encoding="utf-8")).items()}


def read_up_to(file: Path) -> dict[int, int]:
    """The next offset of each partition that an earlier watcher has read; a line that was cut short is removed."""
    if not file.exists():
        return {}
    whole = file.read_bytes().rpartition(b"\n")
    os.truncate(file, len(whole[0] + whole[1]))
    records = [json.loads(line) for line in whole[0].splitlines()]
    return {record["partition"]: record["offset"] + 1 for record in records}


def _seen(message: Message) -> dict[str, Any]:
    digest = record_digest(message.key(), message.value()).hex()
    return {"at": time.time(), "partition": message.partition(), "offset": message.offset(), "digest": digest}


def main(arguments: Sequence[str] | None = None) -> int:
    """Watch until it is time to stop; returns the exit code."""
    parser = Flags("watch", prog="watch", description="Watch a stack.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=float, default=3600.0, metavar="SECONDS")
    chosen = parser.parse_args(arguments)
    folder: Path = chosen.folder
    end = time.monotonic() + chosen.limit

    def stopped() -> bool:
        return (folder / _STOP).exists() or time.monotonic() >= end

    settings = Settings()
    samples = {f"{name}.jsonl": make() for name, make in samplers(settings).items()}
    threads = [
        threading.Thread(target=take, args=(sample, folder / name, stopped), daemon=True)
        for name, sample in samples.items()
    ]
    for thread in threads:
        thread.start()
    read_windows(settings, folder / "seen.jsonl", stopped)
    for thread in threads:
        thread.join(timeout=60)
    return 0


if __name__ == "__main__":
    run("watch", main)
