"""Three brokers and two Spark workers on Compose: each may lose one, and `--wipe` removes what they have."""

from __future__ import annotations

import json
import subprocess
import urllib.request

import pytest
from confluent_kafka.admin import AdminClient

from faultline.stack.home import Home
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.compose, pytest.mark.full, pytest.mark.timeout(2400)]
BACKEND = "compose"
SETTINGS = {"KAFKA_BROKERS": "3", "SPARK_WORKERS": "2"}

LIMIT_SECONDS = 180
ADDED = {"kafka-2", "kafka-3", "spark-master", "spark-worker", "spark-worker-2"}


def volumes(project: str) -> set[str]:
    """The volumes of a project, by the names in docker-compose.yaml."""
    command = ["docker", "volume", "ls", "--quiet", "--filter", f"label=com.docker.compose.project={project}"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {name.removeprefix(f"{project}_") for name in listed}


def test_every_service_is_up_and_healthy(stack: RunningStack) -> None:
    stack.require_all_running()
    report = stack.wait_until_well()
    assert {each["service"] for each in report["services"]} > ADDED


def test_clients_of_the_host_reach_each_broker(stack: RunningStack) -> None:
    for name in ("KAFKA_PORT", "KAFKA_2_PORT", "KAFKA_3_PORT"):
        port = stack.environment[f"STACK_{name}"]
        found = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=LIMIT_SECONDS)
        assert sorted(found.brokers) == [1, 2, 3]
        assert all(sorted(each.replicas) == [1, 2, 3] for each in found.topics["visits"].partitions.values())


def test_tools_in_containers_reach_the_cluster(stack: RunningStack) -> None:
    brokers = "python3 -c 'from faultline.settings import Settings; print(Settings().bootstrap)'"
    inside = stack.script("exec.sh", "kafka-2", "bash", "-c", brokers).stdout.strip()
    assert [address.partition(":")[0] for address in inside.split(",")] == ["kafka", "kafka-2", "kafka-3"]
    listed = stack.script("exec.sh", "kafka-3", "kafka-topics.sh", "--bootstrap-server", inside, "--list").stdout
    assert "visit_windows" in listed.split()


def test_both_workers_have_an_executor(stack: RunningStack) -> None:
    port = stack.environment["STACK_SPARK_MASTER_UI_PORT"]

    def workers() -> list[dict[str, object]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/", timeout=30) as answer:
            return list(json.loads(answer.read())["workers"])

    wait_until(lambda: [each["coresused"] for each in workers()] == [1, 1], "two executors", seconds=LIMIT_SECONDS)


def test_all_goes_on_without_a_broker_and_a_worker(stack: RunningStack) -> None:
    stack.script("kill.sh", "kafka-2")
    stack.script("kill.sh", "spark-worker")
    stack.wait_for_records("visit_windows", 50)
    stack.wait_for_batches(2)
    stack.script("start.sh", "kafka-2")
    stack.script("start.sh", "spark-worker")
    stack.wait_for_checkpoints(2)


def test_nothing_is_lost_and_everything_is_removed(stack: RunningStack) -> None:
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict
    marker = Home(stack.home).marker()
    assert marker is not None and marker.topics.brokers == 3
    assert {"kafka", "kafka-2", "kafka-3", "spark-master"} <= volumes(marker.project)
    stack.script("down.sh", "--wipe")
    assert volumes(marker.project) == set()
