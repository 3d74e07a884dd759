"""The windowing job on a separate cluster: its counts, outputs and state, through kills and restores."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contract.settings import ROOT
from contract.visit import iso_time
from flink_job.rest import FlinkError, call, checkpoints
from stack.ports import free_ports
from tests.stack.broker import Broker
from tests.stack.flink_accounts import Topics, account
from tests.stack.flink_corpus import corpus

pytestmark = pytest.mark.stack

PYTHON = Path(os.environ.get("STACK_ARTIFACTS") or ROOT / ".artifacts") / "venv-flink" / "bin" / "python"
START = 1767225600000
WINDOW_SECONDS = 10
LIMIT_SECONDS = 180
# Everything in the corpus is on time, whatever its century; the last visits close all windows but their own.
CENTURIES_SECONDS = 7_000_000_000
FAR_AHEAD = "9998-01-01T00:00:00Z"


class Cluster:
    """A JobManager and a TaskManager in a folder, and the job's four topics on a broker."""

    def __init__(self, broker: Broker, home: Path, **settings: str) -> None:
        name = uuid.uuid4().hex[:8]
        self.broker = broker
        self.topics = Topics(*(f"{topic}-{name}" for topic in asdict(Topics()).values()))
        ui, rpc = free_ports("127.0.0.1", 2)
        self.rest = f"http://127.0.0.1:{ui}"
        self.environment = os.environ | {
            "STACK_HOME": str(home), "STACK_FLINK_REST": self.rest,
            "STACK_FLINK_UI_PORT": str(ui), "STACK_FLINK_RPC_PORT": str(rpc), "STACK_KAFKA_BOOTSTRAP": broker.bootstrap,
            "STACK_VISITS_TOPIC": self.topics.visits, "STACK_VISIT_WINDOWS_TOPIC": self.topics.windows,
            "STACK_VISITS_LATE_TOPIC": self.topics.late, "STACK_VISITS_REJECTED_TOPIC": self.topics.rejected,
            "STACK_FLINK_GROUP_ID": name, "STACK_FLINK_TRANSACTIONAL_ID_PREFIX": name,
            "STACK_FLINK_CHECKPOINT_INTERVAL_MS": "1000",
            "STACK_FLINK_WINDOW_SECONDS": str(WINDOW_SECONDS), "PYTHONPATH": str(ROOT),
        } | settings  # fmt: skip
        self.log = home / "services.log"
        self.services: dict[str, subprocess.Popen[bytes]] = {}
        # Windows of a far future are written with their own time, which a broker refuses by default.
        config = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
        topics = [NewTopic(topic, 2, 1, config=config) for topic in asdict(self.topics).values()]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.create_topics(topics).values():
            future.result(timeout=LIMIT_SECONDS)

    def start(self, service: str) -> None:
        """Start a service in its own process group."""
        with self.log.open("ab") as log:
            self.services[service] = subprocess.Popen(
                [str(ROOT / "services" / f"{service}.sh")],
                env=self.environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self, service: str) -> None:
        """Kill a service's whole process group."""
        os.killpg(self.services[service].pid, signal.SIGKILL)
        self.services.pop(service).wait()

    def module(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module of the job in the Flink environment."""
        return subprocess.run(
            [str(PYTHON), "-m", *arguments],
            env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip

    def submit(self, *arguments: str) -> str:
        """Submit the job and return its id."""
        done = self.module("flink_job.submit", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def wait(self, what: str, done: Any) -> None:
        """Wait until `done()`; a JobManager that does not answer yet is waited for as well."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            try:
                if done():
                    return
            except FlinkError:
                pass
            time.sleep(0.3)
        log = self.log.read_text(errors="replace")
        pytest.fail(f"not within {LIMIT_SECONDS} s: {what}\n{log[-3000:]}")

    def drain(self, job: str) -> None:
        """Wait until a checkpoint contains every visit and one more has been completed, so its output is committed."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": self.environment["STACK_FLINK_GROUP_ID"]}
        )
        partitions = [TopicPartition(self.topics.visits, partition) for partition in (0, 1)]
        end = sum(consumer.get_watermark_offsets(partition)[1] for partition in partitions)
        read = lambda: sum(max(0, partition.offset) for partition in consumer.committed(partitions, 10))  # noqa: E731
        self.wait(f"{end} visits in a checkpoint", lambda: read() == end)
        completed = checkpoints(self.rest, job)["counts"]["completed"]
        self.wait("two checkpoints more", lambda: checkpoints(self.rest, job)["counts"]["completed"] >= completed + 2)
        consumer.close()

    def dropped(self, job: str) -> list[str]:
        """Every numLateRecordsDropped of the job: what a window operator threw away."""
        values = []
        for vertex in call(self.rest, f"/jobs/{job}")["vertices"]:
            path = f"/jobs/{job}/vertices/{vertex['id']}/metrics"
            names = [m["id"] for m in call(self.rest, path) if m["id"].endswith("numLateRecordsDropped")]
            values += [metric["value"] for name in names for metric in call(self.rest, f"{path}?get={name}")]
        return values


@pytest.fixture
def cluster(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster; settings come from the test's parameter."""
    running = Cluster(broker, tmp_path, **getattr(request, "param", {}))
    running.start("jobmanager")
    running.start("taskmanager")
    try:
        running.wait("a TaskManager", lambda: call(running.rest, "/taskmanagers")["taskmanagers"])
        yield running
    finally:
        for service in list(running.services):
            running.kill(service)


@pytest.mark.parametrize("cluster", [{"STACK_FLINK_OUT_OF_ORDERNESS_SECONDS": str(CENTURIES_SECONDS)}], indirect=True)
def test_the_job_and_the_rule_agree_on_every_value(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap})
    for number, value in enumerate(corpus()):
        key = (None, b"", b"key")[number % 3]
        producer.produce(cluster.topics.visits, value, key, partition=number % 2, timestamp=START + number)
    for partition in (0, 1):
        closing = json.dumps({"visit_id": "closing", "event_time": FAR_AHEAD})
        producer.produce(cluster.topics.visits, closing, partition=partition, timestamp=START)
    producer.flush()
    cluster.drain(cluster.submit())
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, CENTURIES_SECONDS, cluster.topics)
    assert result.wrong == []
    assert (result.late, result.pending) == (0, 2)
    assert result.in_windows > 500 and result.rejected > 1500


def keep_producing(cluster: Cluster, stop: threading.Event) -> None:
    """Send out-of-order visits, some late, some unparsable, at three times the speed of event time."""
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "linger.ms": 5})
    now = START + 100_000
    while not stop.is_set():
        for _ in range(10):
            now += 6
            behind = chance.randrange(4900) if chance.random() > 0.02 else chance.randrange(20_000, 90_000)
            visit = {"visit_id": f"v{chance.randrange(30)}", "event_time": iso_time(now - behind)}
            value = chance.choice((b"junk", None)) if chance.random() < 0.01 else json.dumps(visit).encode()
            producer.produce(cluster.topics.visits, value, partition=chance.randrange(2), timestamp=now)
        producer.poll(0)
        stop.wait(0.02)
    producer.flush()


def test_nothing_is_lost_or_twice_after_a_kill_and_a_restore(cluster: Cluster) -> None:
    stop = threading.Event()
    producing = threading.Thread(target=keep_producing, args=(cluster, stop))
    producing.start()
    try:
        job = cluster.submit()
        refused = cluster.module("flink_job.submit")
        assert refused.returncode == 2 and job in refused.stderr and len(refused.stderr.splitlines()) == 1
        cluster.wait("the third checkpoint", lambda: checkpoints(cluster.rest, job)["counts"]["completed"] >= 3)
        cluster.kill("taskmanager")
        cluster.start("taskmanager")
        restored = lambda: checkpoints(cluster.rest, job)["latest"]["restored"]  # noqa: E731
        cluster.wait("a restart from a checkpoint", restored)
        completed = checkpoints(cluster.rest, job)["counts"]["completed"]
        cluster.wait("the next one", lambda: checkpoints(cluster.rest, job)["counts"]["completed"] > completed + 1)
        assert cluster.module("flink_job.cancel").returncode == 0
        last = checkpoints(cluster.rest, job)["latest"]["completed"]["external_path"].removeprefix("file:")
        stop.wait(3)
        job = cluster.submit("--from", last)
        stop.wait(4)
    finally:
        stop.set()
        producing.join()
    cluster.drain(job)
    # The JobManager asks for metrics every ten seconds.
    cluster.wait("the window operator's metrics", lambda: cluster.dropped(job))
    assert cluster.dropped(job) == ["0"]
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, 5, cluster.topics)
    assert result.wrong == []
    assert min(result.in_windows, result.late, result.rejected, result.pending) > 0
