"""Three brokers: each record on all of them, also after a restart; and one broker with the data of an older stack."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from faultline.ports import answers
from faultline.services.kafka.start import configuration
from faultline.settings import ROOT, Settings
from faultline.stack.own import own_environment
from faultline.stack.processes import Program
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.timeout(900)]
SETTINGS = {"KAFKA_BROKERS": "3"}

LIMIT_SECONDS = 120
INTERNAL = ("__consumer_offsets", "__transaction_state")
NAMES = ("kafka", "kafka-2", "kafka-3")


def admin(stack: RunningStack) -> AdminClient:
    ports = [stack.environment[f"STACK_KAFKA_{copy}PORT"] for copy in ("", "2_", "3_")]
    return AdminClient({"bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in ports)})


def least_in_sync(client: AdminClient, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    [future] = client.describe_configs([resource]).values()
    return str(future.result(timeout=LIMIT_SECONDS)["min.insync.replicas"].value)


@pytest.mark.full
def test_every_topic_is_on_all_three_and_needs_two(stack: RunningStack) -> None:
    stack.require_all_running()
    client = admin(stack)
    topics = client.list_topics(timeout=LIMIT_SECONDS).topics
    assert {"visits", "visit_windows", *INTERNAL} <= topics.keys()
    for name, topic in topics.items():
        assert all(sorted(each.replicas) == [1, 2, 3] for each in topic.partitions.values()), name
        assert least_in_sync(client, name) == "2", name


@pytest.mark.full
def test_the_script_names_the_brokers(stack: RunningStack) -> None:
    report = stack.wait_until_well()
    assert {each["service"] for each in report["services"]} >= set(NAMES)
    assert report["chosen"]["KAFKA_BROKERS"] == "3"


@pytest.mark.full
def test_one_broker_is_made_the_leader_and_each_by_itself_says_so(stack: RunningStack) -> None:
    def asked(module: str, *words: str) -> Any:
        return json.loads(stack.script("exec.sh", "generator", "python", "-m", module, *words).stdout)

    for broker, name in enumerate(NAMES, 1):
        stack.script("exec.sh", "generator", "python", "-m", "faultline.services.kafka.lead", name)
        leaders = {"visits-0": broker, "visits-1": broker}
        assert asked("faultline.probes.leaders") == {"1": leaders, "2": leaders, "3": leaders}
    assert asked("faultline.probes.leaders", "--controller") in (1, 2, 3)
    assert all(asked("faultline.probes.ends").values())
    refused = stack.script(
        "exec.sh", "generator", "python", "-m", "faultline.services.kafka.lead", "kafka-4", check=False
    )
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "there is no broker 'kafka-4'; the brokers are: kafka, kafka-2, kafka-3" in refused.stderr


@pytest.mark.full
def test_down_ends_all_three_by_themselves_and_nothing_is_lost(stack: RunningStack) -> None:
    down = stack.script("down.sh")
    assert "SIGKILL" not in down.stderr
    stack.script("up.sh")
    stack.wait_for_checkpoints(1)
    client = admin(stack)

    def in_sync() -> bool:
        topics = client.list_topics(timeout=LIMIT_SECONDS).topics
        return all(len(each.isrs) == 3 for name in topics for each in topics[name].partitions.values())

    wait_until(in_sync, "all replicas to be in sync", seconds=LIMIT_SECONDS)
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict


@pytest.mark.ci
def test_a_broker_with_the_data_of_an_older_stack_still_starts(tmp_path: Path) -> None:
    """Storage was formatted with --standalone, and a random id, before there were several brokers."""
    environ = own_environment(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    config = data / "server.properties"
    config.write_text(configuration(Settings(environ), 1, data), encoding="utf-8")
    tool = [str(ROOT / "faultline" / "services" / "kafka" / "bin" / "kafka-storage.sh"), "format", "--standalone"]
    subprocess.run([*tool, "--cluster-id", "AkU3OEVBNTcwNTJENDM2Qg", "--config", str(config)], check=True)
    command = [str(ROOT / "faultline" / "services" / "kafka.sh"), "--data", str(data)]
    with Program(command, environ, tmp_path / "broker.log", ROOT) as program:
        port = environ["STACK_KAFKA_PORT"]
        program.wait_for(lambda: answers("127.0.0.1", int(port)), "the broker", seconds=LIMIT_SECONDS)
        found = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=LIMIT_SECONDS)
        assert str(found.cluster_id) == "AkU3OEVBNTcwNTJENDM2Qg"
        assert list(found.brokers) == [1]
        program.close(seconds=60)
