"""A Flink cluster for tests: a JobManager and a TaskManager in a folder, with its own topics."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from faultline.formats.visit import iso_time
from faultline.inspector.model import Report, report_from
from faultline.settings import ROOT
from faultline.stack.own import own_environment
from faultline.waiting import wait_until
from flink_job.rest import FlinkError, call, checkpoints
from tests.called import process
from tests.stack.broker import Broker
from tests.stack.children import tied
from tests.stack.flink_accounts import Topics

PYTHON = Path(os.environ.get("STACK_ARTIFACTS") or ROOT / ".artifacts") / "venv-flink" / "bin" / "python"
START = 1767225600000
WINDOW_SECONDS = 10
LIMIT_SECONDS = 180
BOUND_SECONDS = 5
ENDED = ("FINISHED", "CANCELED", "FAILED")


class Cluster:
    """A JobManager and a TaskManager in a folder, and the job's four topics on a broker.

    `host`: the cluster whose services this one shares; it has topics and job names of its own.
    """

    def __init__(
        self, broker: Broker, home: Path, host: Cluster | None = None, /, partitions: str = "2", **settings: str
    ) -> None:
        name = uuid.uuid4().hex[:8]
        self.broker = broker
        self.topics = Topics(*(f"{topic}-{name}" for topic in asdict(Topics()).values()))
        own = host.environment if host else own_environment(home)
        self.rest = f"http://127.0.0.1:{own['STACK_FLINK_UI_PORT']}"
        self.environment: dict[str, str] = own | {
            "STACK_FLINK_REST": self.rest, "STACK_KAFKA_BOOTSTRAP": broker.bootstrap,
            "STACK_VISITS_TOPIC": self.topics.visits, "STACK_VISIT_WINDOWS_TOPIC": self.topics.windows,
            "STACK_VISITS_LATE_TOPIC": self.topics.late, "STACK_VISITS_REJECTED_TOPIC": self.topics.rejected,
            "STACK_FLINK_GROUP_ID": name, "STACK_FLINK_TRANSACTIONAL_ID_PREFIX": name,
            "STACK_FLINK_CHECKPOINT_INTERVAL_MS": "1000", "STACK_TOPIC_PARTITIONS": partitions,
            "STACK_CLASSIC_JOB_NAME": f"classic-{name}", "STACK_CLASSIC_WINDOWS_TOPIC": f"classic-windows-{name}",
            "STACK_CLASSIC_LATE_TOPIC": f"classic-late-{name}",
            "STACK_FLINK_WINDOW_SECONDS": str(WINDOW_SECONDS), "PYTHONPATH": str(ROOT),
        } | settings  # fmt: skip
        self.partitions = range(int(partitions))
        self.log = home / "services.log"
        self.services: dict[str, subprocess.Popen[bytes]] = host.services if host else {}
        # Windows of a far future are written with their own time, which a broker refuses by default.
        config = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
        names = [*asdict(self.topics).values(), f"classic-windows-{name}", f"classic-late-{name}"]
        topics = [NewTopic(topic, int(partitions), 1, config=config) for topic in names]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics(topics).values():
            future.result(timeout=LIMIT_SECONDS)

    def grow(self, partitions: int) -> None:
        """Give `visits` this number of partitions; jobs that are submitted from now on know of them."""
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for future in admin.create_partitions([NewPartitions(self.topics.visits, partitions)]).values():
            future.result(timeout=LIMIT_SECONDS)
        self.partitions = range(partitions)
        self.environment["STACK_TOPIC_PARTITIONS"] = str(partitions)

    def start(self, service: str) -> None:
        """Start a service in its own process group."""
        with self.log.open("ab") as log:
            self.services[service] = subprocess.Popen(
                tied(str(ROOT / "faultline" / "services" / f"{service}.sh")),
                env=self.environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def start_what_is_missing(self) -> None:
        """Start the services that do not run, and wait for a TaskManager."""
        for service in ("jobmanager", "taskmanager"):
            if service not in self.services:
                self.start(service)
        self.wait("a TaskManager", lambda: call(self.rest, "/taskmanagers")["taskmanagers"])

    def cancel_all(self) -> None:
        """Cancel every job, so that the next one finds free slots."""
        for job in call(self.rest, "/jobs")["jobs"]:
            if job["status"] not in ENDED:
                call(self.rest, f"/jobs/{job['id']}?mode=cancel", method="PATCH")
        self.wait(
            "the end of all jobs", lambda: all(job["status"] in ENDED for job in call(self.rest, "/jobs")["jobs"])
        )

    def kill(self, service: str) -> None:
        """Kill a service's whole process group."""
        os.killpg(self.services[service].pid, signal.SIGKILL)
        self.services.pop(service).wait()

    def pause(self, service: str, *, seconds: float) -> None:
        """Stop a service's whole process group with SIGSTOP for some time."""
        group = self.services[service].pid
        os.killpg(group, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.killpg(group, signal.SIGCONT)

    def module(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module of the job in the Flink environment."""
        return subprocess.run(
            [str(PYTHON), "-m", *arguments],
            env=self.environment, cwd=self.environment["PYTHONPATH"],
            capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip

    def submit(self, *arguments: str) -> str:
        """Submit the job and return its id."""
        done = self.module("flink_job.submit", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def wait(self, what: str, done: Any) -> None:
        """Wait until `done()`; a JobManager that does not answer yet is waited for as well."""
        log = lambda: self.log.read_text(errors="replace")[-3000:]  # noqa: E731
        # So is a broker whose group coordinator is still loading.
        wait_until(done, what, seconds=LIMIT_SECONDS, explain=log, despite=(FlinkError, KafkaException))

    def drain(self, job: str, group: str = "STACK_FLINK_GROUP_ID") -> None:
        """Wait until a checkpoint contains every visit and one more has been completed, so its output is committed.

        `group`: the variable that names the job's consumer group.
        """
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": self.environment[group]})
        partitions = [TopicPartition(self.topics.visits, partition) for partition in self.partitions]
        end = sum(consumer.get_watermark_offsets(partition)[1] for partition in partitions)
        read = lambda: sum(max(0, partition.offset) for partition in consumer.committed(partitions, 10))  # noqa: E731
        self.wait(f"{end} visits in a checkpoint", lambda: read() == end)
        self.wait_for_checkpoints(job, 2)
        consumer.close()

    def wait_for_checkpoints(self, job: str, more: int) -> None:
        """Wait until the job has completed this number of further checkpoints."""
        completed = checkpoints(self.rest, job)["counts"]["completed"]
        self.wait(
            f"{more} checkpoints more", lambda: checkpoints(self.rest, job)["counts"]["completed"] >= completed + more
        )

    def dropped(self, job: str) -> list[str]:
        """Every numLateRecordsDropped of the job: what a window operator threw away."""
        values = []
        for vertex in call(self.rest, f"/jobs/{job}")["vertices"]:
            path = f"/jobs/{job}/vertices/{vertex['id']}/metrics"
            names = [m["id"] for m in call(self.rest, path) if m["id"].endswith("numLateRecordsDropped")]
            values += [metric["value"] for name in names for metric in call(self.rest, f"{path}?get={name}")]
        return values


@contextmanager
def running_cluster(broker: Broker, home: Path, **settings: str) -> Iterator[Cluster]:
    """A cluster with these settings, and with its TaskManager; it ends with the block."""
    running = Cluster(broker, home, **settings)
    try:
        running.start_what_is_missing()
        yield running
    finally:
        for service in list(running.services):
            running.kill(service)


@pytest.fixture(scope="session")
def shared_cluster(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The services that all clusters of the fixture `cluster` share."""
    with running_cluster(broker, tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture
def cluster(shared_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with topics of its own; settings come from the test's parameter, for its jobs and not its services."""
    shared_cluster.start_what_is_missing()
    home = Path(shared_cluster.environment["STACK_HOME"])
    settings: dict[str, Any] = getattr(request, "param", {})
    yield Cluster(shared_cluster.broker, home, shared_cluster, **settings)
    shared_cluster.start_what_is_missing()
    shared_cluster.cancel_all()


def newest_checkpoint(cluster: Cluster, job: str) -> str:
    """Folder of the job's newest completed checkpoint."""
    return str(checkpoints(cluster.rest, job)["latest"]["completed"]["external_path"]).removeprefix("file:")


def described(*paths: Path, rows: int = 5) -> list[Report]:
    """The inspector's reports on checkpoints, by one JVM; `rows` limits the preview of each state."""
    command = [str(PYTHON), "-m", "faultline.inspector.flink", "describe", f"--rows={rows}", *map(str, paths)]
    done = process(command, seconds=900)
    assert (done.returncode, done.stderr) == (0, "")
    return [report_from(json.loads(line)) for line in done.stdout.splitlines()]


def send(cluster: Cluster, partition: int, seconds: range | list[int], visit_id: str = "v") -> None:
    """Send a visit for each second of event time since START."""
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "enable.idempotence": True})
    for second in seconds:
        at = START + second * 1000
        visit = {"visit_id": visit_id, "event_time": iso_time(at)}
        producer.produce(cluster.topics.visits, json.dumps(visit), partition=partition, timestamp=at)
    producer.flush()


def _produce(cluster: Cluster, stop: threading.Event, partitions: int = 2, behind_ms: int = 0) -> None:
    """Send out-of-order visits, some late, some unparsable, at three times the speed of event time.

    Every further partition is `behind_ms` of event time behind the one before it.
    """
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    now = START + 100_000
    while not stop.is_set():
        for _ in range(10):
            now += 6
            behind = chance.randrange(4900) if chance.random() > 0.02 else chance.randrange(20_000, 90_000)
            partition = chance.randrange(partitions)
            event_time = now - behind - partition * behind_ms
            visit = {"visit_id": f"v{chance.randrange(30)}", "event_time": iso_time(event_time)}
            value = chance.choice((b"junk", None)) if chance.random() < 0.01 else json.dumps(visit).encode()
            producer.produce(cluster.topics.visits, value, partition=partition, timestamp=now)
        producer.poll(0)
        stop.wait(0.02)
    producer.flush()


@contextmanager
def producing(cluster: Cluster, partitions: int = 2, behind_ms: int = 0) -> Iterator[Callable[[float], bool]]:
    """Send visits, as `_produce` does, until the block ends; yields what waits for some seconds of them."""
    stop = threading.Event()
    thread = threading.Thread(target=_produce, args=(cluster, stop, partitions, behind_ms))
    thread.start()
    try:
        yield stop.wait
    finally:
        stop.set()
        thread.join()
