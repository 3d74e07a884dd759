"""Open transactions of a real topic: named, committed or aborted rightly, and never the other way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from faultline.formats.visit import iso_time
from faultline.settings import ROOT
from faultline.waiting import wait_until
from flink_job.rest import call
from tests.stack.broker import Broker
from tests.stack.flink_accounts import read_all
from tests.stack.flink_cluster import LIMIT_SECONDS, PYTHON, START, Cluster, newest_checkpoint

pytestmark = pytest.mark.ci

_ATTEMPTS = 60


def transactions(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program behind scripts/transactions.sh."""
    return subprocess.run(
        [str(PYTHON), "-m", "faultline.inspector.transactions", *arguments],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip


def found(environment: dict[str, str], topic: str, *arguments: str) -> dict[str, Any]:
    """Return the program's JSON output."""
    done = transactions(environment, topic, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def begin(broker: Broker, topic: str, name: str, request: pytest.FixtureRequest) -> None:
    """Write a record into a transaction and leave it open."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
    request.addfinalizer(producer.close)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"a window", partition=0).get(30)


def alone(broker: Broker, home: Path) -> dict[str, str]:
    """Environment without a JobManager and without checkpoints."""
    settings = {"STACK_HOME": str(home), "STACK_KAFKA_BOOTSTRAP": broker.bootstrap, "PYTHONPATH": str(ROOT)}
    return os.environ | settings | {"STACK_FLINK_REST": "http://127.0.0.1:1"}


def test_a_transaction_of_another_program(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    topic, name = f"orders-{uuid.uuid4()}", f"shop-{uuid.uuid4()}"
    broker.create_topics(topic)
    environment = alone(broker, tmp_path)
    assert found(environment, topic)["transactions"] == []
    begin(broker, topic, name, request)
    begin(broker, topic, f"{name}-later", request)

    said = found(environment, topic)
    assert said["behind"] == 2
    assert said["stops"][0] == {"partition": 0, "stable": 0, "end": 2}
    first, later = said["transactions"]
    assert (first["transactional_id"], later["transactional_id"]) == (name, f"{name}-later")
    assert first["held"] == [{"partition": 0, "first_offset": 0}]
    assert first["right"] == "unknown"
    assert first["since"] <= time.time() * 1000 < first["ends_at"]

    for arguments, code in (
        (["--commit", name, "--apply"], 1), (["--abort", "no-such-id"], 2), (["--abort", name], 0), (["--apply"], 0),
    ):  # fmt: skip
        done = transactions(environment, topic, *arguments)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert found(environment, topic)["behind"] == 2, f"{arguments} changed the topic"
    assert transactions(environment, topic, "--abort", name, "--apply").returncode == 0
    said = found(environment, topic)
    assert [each["transactional_id"] for each in said["transactions"]] == [f"{name}-later"]
    assert said["stops"][0]["stable"] == 1


def test_what_an_ended_job_wrote_without_a_checkpoint_is_aborted(
    broker: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    topic = f"results-{uuid.uuid4()}"
    broker.create_topics(topic)
    environment = alone(broker, tmp_path) | {"STACK_FLINK_TRANSACTIONAL_ID_PREFIX": "ours"}
    begin(broker, topic, f"ours-{topic}-0-0", request)
    assert [each["right"] for each in found(environment, topic)["transactions"]] == ["abort"]
    assert transactions(environment, topic, "--apply").returncode == 0
    said = found(environment, topic)
    assert (said["transactions"], said["behind"]) == ([], 0)
    assert read_all(broker.bootstrap, topic) == []


def test_what_is_not_there(broker: Broker, tmp_path: Path) -> None:
    done = transactions(alone(broker, tmp_path), f"no-{uuid.uuid4()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no topic" in done.stderr
    environment = alone(broker, tmp_path) | {"STACK_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    done = transactions(environment, "visits")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


def keep_sending(cluster: Cluster, stop: threading.Event) -> None:
    """Send visits to every partition, with the event time at ten times its speed: windows close all the time."""
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    at = START
    while not stop.is_set():
        at += 200
        for partition in cluster.partitions:
            visit = {"visit_id": f"v{at // 200 % 7}", "event_time": iso_time(at)}
            producer.produce(cluster.topics.visits, json.dumps(visit), partition=partition, timestamp=at)
        producer.poll(0)
        stop.wait(0.02)
    producer.flush()


def in_tools(environment: dict[str, str], *module: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tools against the cluster's topics."""
    return subprocess.run(
        [sys.executable, "-m", *module],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
    )  # fmt: skip


def stop_between_the_phases(cluster: Cluster, job: str) -> Path:
    """Freeze the TaskManager when a checkpoint is complete and its transaction not committed; return the checkpoint.

    The file `_metadata` completes a checkpoint, and the commit follows some milliseconds later.
    """
    group = cluster.services["taskmanager"].pid
    for _ in range(_ATTEMPTS):
        newest = Path(newest_checkpoint(cluster, job))
        following = newest.parent / f"chk-{int(newest.name.removeprefix('chk-')) + 1}" / "_metadata"
        wait_until(following.exists, str(following), seconds=LIMIT_SECONDS, every=0)
        os.killpg(group, signal.SIGSTOP)
        said = found(cluster.environment, cluster.topics.windows)
        promised = [each for each in said["transactions"] if each["promises"]]
        if promised:
            # The job still runs, as far as Flink knows.
            assert {each["right"] for each in said["transactions"]} == {"wait"}
            return following.parent
        os.killpg(group, signal.SIGCONT)
        cluster.wait_for_checkpoints(job, 1)
    pytest.fail(f"not in {_ATTEMPTS} attempts: a complete checkpoint whose transaction is open")


@pytest.mark.parametrize(
    "cluster", [pytest.param({"STACK_FLINK_WINDOW_SECONDS": "2"}, marks=[pytest.mark.full])], indirect=True
)
def test_a_promised_transaction_is_committed_and_the_verdict_holds(cluster: Cluster, tmp_path: Path) -> None:
    stop = threading.Event()
    sending = threading.Thread(target=keep_sending, args=(cluster, stop))
    sending.start()
    topic = cluster.topics.windows
    try:
        job = cluster.submit()
        cluster.wait_for_checkpoints(job, 2)
        checkpoint = stop_between_the_phases(cluster, job)
    finally:
        stop.set()
        sending.join()
    for service in ("taskmanager", "jobmanager"):
        cluster.kill(service)

    said = found(cluster.environment, topic)
    (promised,) = [each for each in said["transactions"] if each["promises"]]
    assert promised["right"] == "commit"
    assert promised["job"] == "windows"
    assert promised["promises"][-1]["job_id"] == job
    assert promised["promises"][-1]["path"] == str(checkpoint)
    name = promised["transactional_id"]

    done = transactions(cluster.environment, topic, "--abort", name, "--apply")
    assert done.returncode == 1
    assert "promises to commit it" in done.stderr
    before = len(read_all(cluster.broker.bootstrap, topic))
    for other in said["transactions"]:
        if other is not promised:
            assert other["right"] == "abort"
            refused = transactions(cluster.environment, topic, "--commit", other["transactional_id"], "--apply")
            assert refused.returncode == 1
    assert len(read_all(cluster.broker.bootstrap, topic)) == before

    # Each of the three sinks has its own.
    for each in (topic, cluster.topics.late, cluster.topics.rejected):
        done = transactions(cluster.environment, each, "--apply")
        assert done.returncode == 0, done.stderr
        said = found(cluster.environment, each)
        assert (said["transactions"], said["behind"]) == ([], 0)
    assert len(read_all(cluster.broker.bootstrap, topic)) > before

    cluster.start("jobmanager")
    cluster.start("taskmanager")
    cluster.wait("a TaskManager", lambda: call(cluster.rest, "/taskmanagers")["taskmanagers"])
    job = cluster.submit("--from", str(checkpoint))
    # So that no window is open at the end. Its ledger goes elsewhere: this test's visits are in none.
    elsewhere = {"STACK_HOME": str(tmp_path / "ledger-of-the-closing-visits")}
    assert in_tools(cluster.environment | elsewhere, "generator.close").returncode == 0
    cluster.drain(job)
    judged = in_tools(cluster.environment, "faultline.verdict", "flink", "--json", "--wait", "60")
    verdict = json.loads(judged.stdout)
    assert (judged.returncode, verdict["outcome"]) == (0, "holds"), json.dumps(verdict, indent=1)
    assert verdict["lost"] == verdict["duplicated"] == 0
    assert verdict["observed"] > 0
