"""Answer Prometheus with figures that no engine publishes: lag, last stable offsets, ages, which service answers.

Usage: python -m faultline.probes.exporter

The samples are those of the live page (faultline/probes/watch.py, reached.py) and of scripts/flink_status.sh. They are
taken beside the answers, so a silent broker delays none; one that is too old is left out, and an unknown value has no
number. Times are in seconds since the epoch, not ages:
https://prometheus.io/docs/practices/instrumentation/#timestamps-not-time-since.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from confluent_kafka.admin import AdminClient
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from faultline.formats.verdict import CATEGORIES, NewestVerdict, Outcome
from faultline.probes.reached import ANSWERS, COME_IN, NOT_KNOWN, reached_sample
from faultline.probes.watch import Sample, Sampler, sample_once, spark_sample
from faultline.settings import Settings
from faultline.stop import ENDING
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from flink_job.status import job_status

INTERVAL_SECONDS = 2.0
OLD_SECONDS = 10.0
"""Age from which a sample is not the present any more."""
_ANSWER_SECONDS = 2.0

SERVICES, TOPICS, FLINK, SPARK, VERDICT = "services", "topics", "flink", "spark", "verdict"
"""The sources of samples."""
Samples = Mapping[str, Mapping[str, Any]]
"""The newest sample of each source, by its name."""


class Exporter(Collector):
    """Makes metrics of the newest samples, whenever Prometheus asks. `source`: the topic of the visits."""

    def __init__(self, samples: Samples, source: str) -> None:
        self._samples, self._source = samples, source

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of this moment."""
        now = time.time()
        samples = dict(self._samples)
        known = {
            name: each for name, each in samples.items() if "unknown" not in each and now - each["at"] <= OLD_SECONDS
        }
        yield _gauge(
            "source_answers", "1: there is a sample of this source, and it is recent.", ("source",),
            {(name,): name in known for name in samples},
        )  # fmt: skip
        for name, take in _TAKERS.items():
            if name in known:
                yield from take(known[name])
        if TOPICS in known:
            yield _lag(known, self._source)


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"faultline_{name}", text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def _services(sample: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    yield _gauge(
        "service_answers", "1: the service answers; of the generator: visits come in.", ("service",),
        {
            (service,): word in (ANSWERS, COME_IN)
            for service, word in sample["states"].items()
            if word != NOT_KNOWN
        },
    )  # fmt: skip


def _topics(sample: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    for name, text in (
        ("high_watermark", "End of the partition: the next offset."),
        ("last_stable_offset", "Readers of committed records get those before it."),
    ):
        found: dict[tuple[str, ...], float] = {
            (topic, str(partition)): offset
            for topic, offsets in sample[name].items()
            for partition, offset in offsets.items()
        }
        yield _gauge(f"topic_{name}", text, ("topic", "partition"), found)
    yield _gauge(
        "under_replicated_partitions", "Partitions of which a replica is not in sync.", (),
        {(): sample["under_replicated"]},
    )  # fmt: skip


def _flink(sample: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    running, tasks = sample["running_tasks"], sample["tasks"]
    all_run = sample["state"] == "RUNNING" and running == tasks
    for name, text, value in (
        ("flink_job_runs", "1: the job is RUNNING, and so are all its tasks.", all_run),
        ("flink_tasks_running", "Tasks of the job that run.", running),
        ("flink_tasks", "Tasks of the job.", tasks),
        ("flink_restarts", "Restarts of the job since it was submitted.", sample["restarts"]),
        (
            "flink_checkpoints_completed",
            "Checkpoints completed since it was submitted.",
            sample["checkpoints_completed"],
        ),
    ):
        yield _gauge(name, text, (), {(): value})
    if sample["latest_at"] is not None:
        yield _gauge(
            "flink_checkpoint_timestamp_seconds", "When the newest checkpoint was completed.", (),
            {(): sample["latest_at"] / 1000},
        )  # fmt: skip


def _spark(sample: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    yield _gauge("spark_batch", "The newest committed micro-batch.", (), {(): sample["batch"]})
    yield _gauge("spark_commit_timestamp_seconds", "When it was committed.", (), {(): sample["committed_at"]})


def _lag(known: Samples, source: str) -> GaugeMetricFamily:
    """Offsets of the source that a pipeline has not committed; a later sample may be ahead of the source's."""
    topics = known[TOPICS]
    read = {FLINK: topics["group"]}
    if SPARK in known:
        read[SPARK] = {int(partition): offset for partition, offset in known[SPARK]["offsets"].items()}
    return _gauge(
        "consumer_lag",
        "Offsets of the source that the pipeline has not committed; the marker of a transaction has one, too.",
        ("pipeline", "partition"),
        {
            (pipeline, str(partition)): max(0, end - offsets.get(partition, 0))
            for pipeline, offsets in read.items()
            for partition, end in topics["high_watermark"].get(source, {}).items()
        },
    )  # fmt: skip


def _verdict(sample: Mapping[str, Any]) -> Iterator[GaugeMetricFamily]:
    kept: NewestVerdict = sample["kept"]
    verdicts = kept.verdicts.by_pipeline
    yield _gauge("verdict_timestamp_seconds", "When the newest verdict was given.", (), {(): kept.at})
    yield _gauge(
        "verdict_outcome", "1: the outcome of the newest verdict on the pipeline.", ("pipeline", "outcome"),
        {(name, each.value): found.outcome is each for name, found in verdicts.items() for each in Outcome},
    )  # fmt: skip
    yield _gauge(
        "verdict_records", "Records of the newest verdict by category.", ("pipeline", "category"),
        {(name, category): found.counts[category] for name, found in verdicts.items() for category in CATEGORIES},
    )  # fmt: skip


_TAKERS: dict[str, Callable[[Mapping[str, Any]], Iterator[GaugeMetricFamily]]] = {
    SERVICES: _services, TOPICS: _topics, FLINK: _flink, SPARK: _spark, VERDICT: _verdict,
}  # fmt: skip


def verdict_sample(settings: Settings) -> Sample:
    """Sample the newest verdict; there is none before the first."""
    return lambda: {"kept": NewestVerdict.read(settings.newest_verdict)}


def flink_sample(settings: Settings) -> Sample:
    """Sample the state of the newest job."""

    def sample() -> dict[str, Any]:
        found = job_status(settings.flink_rest, settings.text("FLINK_JOB_NAME"))
        if found is None:
            raise Unknown("no job")
        return asdict(found)

    return sample


def topics_sample(settings: Settings) -> Sample:
    """Sample the offsets of every topic, those that the Flink job has committed, and the replicas."""
    cluster = Cluster(settings.bootstrap)
    admin = AdminClient({"bootstrap.servers": settings.bootstrap, "log_level": 0})
    group, source = settings.text("FLINK_GROUP_ID"), settings.text("VISITS_TOPIC")

    def ends(topics: Iterable[str], *, committed: bool) -> dict[str, dict[int, int]]:
        spans = {topic: cluster.spans(topic, committed=committed) for topic in topics}
        return {topic: {partition: span.end for partition, span in found.items()} for topic, found in spans.items()}

    def sample() -> dict[str, Any]:
        found = admin.list_topics(timeout=_ANSWER_SECONDS).topics
        # Those of the stack, and not Kafka's own.
        topics = sorted(topic for topic in found if not topic.startswith("__"))
        partitions = [each for topic in found.values() for each in topic.partitions.values()]
        return {
            # The end first: a record that is written meanwhile belongs to no open transaction, and is no lag.
            "high_watermark": ends(topics, committed=False),
            "last_stable_offset": ends(topics, committed=True),
            "group": cluster.group_offsets(group, source),
            "under_replicated": sum(len(each.isrs) < len(each.replicas) for each in partitions),
        }

    return sample


def _take(sample: Sample, name: str, newest: dict[str, dict[str, Any]]) -> None:
    """Take samples for ever."""
    while True:
        begin = time.monotonic()
        newest[name] = sample_once(sample)
        time.sleep(max(0.0, begin + INTERVAL_SECONDS - time.monotonic()))


_SAMPLERS = {
    SERVICES: reached_sample, TOPICS: topics_sample, FLINK: flink_sample, SPARK: spark_sample, VERDICT: verdict_sample,
}  # fmt: skip


def main() -> int:
    """Answer until a signal asks for the end; returns the exit code. Raises CommandError."""
    settings = Settings()
    host, port = settings.bind_host("metrics"), settings.number("METRICS_PORT")
    # Threads inherit it: the signal is for the wait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    newest: dict[str, dict[str, Any]] = {name: {"at": 0.0, "unknown": "not asked yet"} for name in _SAMPLERS}
    registry = CollectorRegistry()
    registry.register(Exporter(newest, settings.text("VISITS_TOPIC")))
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise CommandError(f"port {port} of {host}: {error.strerror}; choose another with STACK_METRICS_PORT") from None
    for name, make in _SAMPLERS.items():
        sample = Sampler(partial(make, settings))
        threading.Thread(target=_take, args=(sample, name, newest), daemon=True, name=name).start()
    signal.sigwait(ENDING)
    return 0


if __name__ == "__main__":
    run("exporter", main)
