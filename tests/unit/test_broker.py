"""The configuration of each broker, the ids that it is formatted with, and where clients reach it."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path

from faultline.formats.jobs import EXACTLY_ONCE
from faultline.services.kafka.start import configuration, format_flags, identity
from faultline.services.kafka.topics import new_topic
from faultline.settings import ROOT, Settings, read_env_file
from faultline.stack.backends.compose import ComposeBackend
from faultline.stack.home import Home
from faultline.stack.settings import load
from flink_job.guarantees import sink_options
from tests.called import program

DATA = Path("/data/kafka")
# What docker-compose.yaml sets, besides the settings of .env.
CONTAINER = {
    "STACK_JOBMANAGER_HOST": "jobmanager", "STACK_KAFKA_BIND_HOST": "0.0.0.0", "STACK_COMPOSE_PROJECT_NAME": "mine",
}  # fmt: skip


def written(broker: int = 1, **environ: str) -> dict[str, str]:
    """The configuration of a broker as Kafka reads it."""
    text = configuration(Settings(environ), broker, DATA)
    assert not re.search(r"@\w+@", text), "a name is not filled in"
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = dict(line.split("=", 1) for line in lines)
    assert len(found) == len(lines), "a key is there twice"
    return found


ALONE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:19093",
    "listeners": "HOST://127.0.0.1:9092,CONTAINER://127.0.0.1:19092,CONTROLLER://localhost:19093",
    "advertised.listeners": "HOST://127.0.0.1:9092,CONTAINER://127.0.0.1:19092,CONTROLLER://localhost:19093",
    "listener.security.protocol.map": "HOST:PLAINTEXT,CONTAINER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CONTAINER",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data/kafka/logs",
    "num.partitions": "2",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.message.timestamp.type": "CreateTime",
    "log.message.timestamp.before.max.ms": "9223372036854775807",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.retention.minutes": "525600",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.max.timeout.ms": "604800000",
    "group.initial.rebalance.delay.ms": "0",
}


def test_a_broker_alone_keeps_the_node_id_the_ports_and_the_quorum_that_its_data_has() -> None:
    assert written() == ALONE


def test_a_broker_alone_in_a_container_keeps_its_quorum_to_itself() -> None:
    listeners = "HOST://{0}:9092,CONTAINER://{1}:19092,CONTROLLER://localhost:19093"
    assert written(1, **CONTAINER) == ALONE | {
        "listeners": listeners.format("0.0.0.0", "0.0.0.0"),
        "advertised.listeners": listeners.format("127.0.0.1", "kafka"),
    }


THREE = {"STACK_KAFKA_BROKERS": "3"}
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
}


def test_three_brokers_on_a_host_have_ports_of_their_own() -> None:
    third = "HOST://127.0.0.1:9096,CONTAINER://127.0.0.1:19096,CONTROLLER://localhost:19097"
    of_the_third = {"node.id": "3", "listeners": third, "advertised.listeners": third}
    quorum = {"controller.quorum.bootstrap.servers": "localhost:19093,localhost:19095,localhost:19097"}
    assert written(1, **THREE) == ALONE | REPLICATED | quorum
    assert written(3, **THREE) == ALONE | REPLICATED | quorum | of_the_third


def test_a_partition_is_not_idle_while_it_has_no_leader() -> None:
    """The job would take its visits as late once another broker leads it."""
    silent = int(written(1, **THREE)["broker.session.timeout.ms"]) / 1000
    assert int(read_env_file(ROOT / ".env.cluster")["FLINK_IDLE_PARTITION_SECONDS"]) >= 3 * silent


def test_a_topic_takes_what_the_job_may_send() -> None:
    settings = Settings()
    of_the_job = [each for each in settings.values if each.endswith("_TOPIC") and each != "VISITS_TOPIC"]
    assert of_the_job
    for name in of_the_job:
        sent = sink_options(settings, name, EXACTLY_ONCE)["properties.max.request.size"]
        assert new_topic(settings.text(name), settings).topic_configs["max.message.bytes"] == sent
    assert "max.message.bytes" not in new_topic(settings.text("VISITS_TOPIC"), settings).topic_configs


def test_three_brokers_are_formatted_alike() -> None:
    """Each of them says the same words, though each has a folder of its own."""
    said = [format_flags(Settings(THREE), DATA.with_name(name)) for name in ("kafka", "kafka-2", "kafka-3")]
    assert said[0] == said[1] == said[2]
    found = voters(said[0])
    assert [(node, address) for node, address, _ in found] == [
        ("1", "localhost:19093"), ("2", "localhost:19095"), ("3", "localhost:19097"),
    ]  # fmt: skip
    assert len({directory for _, _, directory in found} | {said[0][1]}) == 4


def test_clients_get_all_three_brokers(tmp_path: Path) -> None:
    assert Settings(THREE).bootstrap == "127.0.0.1:9092,127.0.0.1:9094,127.0.0.1:9096"
    inside = "kafka:19092,kafka-2:19094,kafka-3:19096"
    assert Settings(THREE | CONTAINER).bootstrap == inside
    assert ComposeBackend(load(THREE, {}, {}), Home(tmp_path)).bootstrap_inside == inside


def test_clients_get_the_broker_that_they_can_reach() -> None:
    assert Settings({}).bootstrap == "127.0.0.1:9092"
    assert Settings(CONTAINER).bootstrap == "kafka:19092"
    assert Settings({"STACK_KAFKA_BOOTSTRAP": "other:1,another:2"}).bootstrap == "other:1,another:2"


def test_commands_beside_the_broker_reach_it_on_compose_too(tmp_path: Path) -> None:
    settings = load({"STACK_KAFKA_CONTAINER_PORT": "29092"}, {}, {})
    assert settings.values["KAFKA_BOOTSTRAP"] == "127.0.0.1:9092"
    assert ComposeBackend(settings, Home(tmp_path)).bootstrap_inside == "kafka:29092"


def voters(flags: list[str]) -> list[tuple[str, str, str]]:
    """Node id, address and directory id of each."""
    listed = flags[flags.index("--initial-controllers") + 1].split(",")
    parts = [re.fullmatch(r"(\d)@([\w-]+:\d+):([\w-]{22})", each) for each in listed]
    return [(found[1], found[2], found[3]) for found in parts if found]


def test_an_id_has_the_form_of_kafkas_own() -> None:
    for words in ("one", "two", "faultline /data 1"):
        made = identity(words)
        assert len(base64.urlsafe_b64decode(made + "==")) == 16
        assert not made.startswith("-")
        # What Kafka prints for the same 16 bytes.
        assert base64.urlsafe_b64encode(base64.urlsafe_b64decode(made + "==")).decode().rstrip("=") == made
        assert identity(words) == made
    assert identity("one") != identity("two")


def test_stacks_have_clusters_of_their_own() -> None:
    flags = format_flags(Settings({}), DATA)
    assert flags != format_flags(Settings({}), Path("/elsewhere/kafka"))
    assert flags[1] != format_flags(Settings({"STACK_COMPOSE_PROJECT_NAME": "mine"}), DATA)[1]


def start(home: Path, **environ: str) -> tuple[int, str]:
    """Start a broker by its script, with a Java that does nothing."""
    java = home / "bin" / "java"
    java.parent.mkdir(exist_ok=True)
    java.write_text("#!/bin/sh\nexit 0\n")
    java.chmod(0o755)
    path = f"{java.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    command = [str(ROOT / "faultline" / "services" / "kafka.sh"), "kafka-2"]
    # Nothing else of the environment: JAVA_HOME would win over PATH.
    environ = {"PATH": path, "STACK_HOME": str(home), **environ}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_controllers_of_a_cluster_stay_where_they_were(tmp_path: Path) -> None:
    assert start(tmp_path, **THREE) == (0, "")
    (tmp_path / ".stack" / "kafka-2" / "logs").mkdir()
    (tmp_path / ".stack" / "kafka-2" / "logs" / "meta.properties").touch()
    assert start(tmp_path, **THREE) == (0, "")
    code, words = start(tmp_path, **THREE, STACK_KAFKA_3_CONTROLLER_PORT="29097")
    assert code == 2
    assert words.startswith(
        "kafka-2: the controllers of these topics are localhost:19093,localhost:19095,localhost:1909"
    )
    assert "start with the ports that they had (PORT_OFFSET, STACK_KAFKA_CONTROLLER_PORT), or start clean" in words
    assert words.count("\n") == 1


def test_a_name_of_no_broker_is_refused(tmp_path: Path) -> None:
    done = program("faultline.services.kafka.start", "kafka-4", "--data", str(tmp_path / "data"))
    assert done.returncode == 2
    assert done.stderr == "kafka-4: there is no broker 'kafka-4'; the brokers are: kafka\n"
    assert not (tmp_path / "data").exists()


def test_topics_wait_for_a_broker_no_longer_than_they_may() -> None:
    # Port 9 (discard) has no listener.
    done = program("faultline.services.kafka.topics", "--wait-seconds", "0.1", STACK_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert done.returncode == 2
    assert done.stderr.startswith("topics: no broker answers at 127.0.0.1:9 (")
    assert done.stderr.endswith("; scripts/status.sh shows which broker does not run\n")


def test_a_broker_that_shall_lead_is_named() -> None:
    done = program("faultline.services.kafka.lead", "kafka-4")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lead: there is no broker 'kafka-4'; the brokers are: kafka\n"
