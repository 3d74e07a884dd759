"""A scratch broker for tests: real Kafka in a temporary folder, on free ports, stopped by its own process id."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contract.settings import ROOT

_START_SECONDS = 60

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
transaction.max.timeout.ms=604800000
# Record timestamps are event times: no limit, or old ones are deleted under the test.
log.retention.ms=-1
"""


@dataclass(frozen=True)
class Broker:
    """A running broker: its address, and its log for when something fails."""

    bootstrap: str
    log: Path

    def create_topics(self, *names: str, partitions: int = 2) -> None:
        """Create topics and wait until they are there."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
            future.result(timeout=_START_SECONDS)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [int(item.getsockname()[1]) for item in sockets]
    finally:
        for item in sockets:
            item.close()


def _jars() -> Path:
    jars = Path(os.environ.get("ARTIFACTS") or ROOT / ".artifacts") / "jars" / "kafka"
    if not jars.is_dir() or shutil.which("java") is None:
        pytest.fail(f"the scratch broker needs java and the jars in {jars}; scripts/test.sh fetches them")
    return jars


def _await_answer(process: subprocess.Popen[bytes], broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            admin.list_topics(timeout=1)
            return
        except KafkaException:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = "\n".join(broker.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
                pytest.fail(f"the scratch broker did not answer in {_START_SECONDS} s:\n{tail}")


def run_broker(folder: Path) -> Iterator[Broker]:
    """Start a broker that keeps everything in a folder, yield it, and stop it."""
    port, controller_port = _free_ports(2)
    config = folder / "server.properties"
    config.write_text(_PROPERTIES.format(port=port, controller_port=controller_port, data=folder / "data"))
    java = ["java", "-Xmx384m", "-cp", f"{_jars()}/*"]
    cluster_id = subprocess.run(
        [*java, "kafka.tools.StorageTool", "random-uuid"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)],
        check=True,
        capture_output=True,
    )
    broker = Broker(f"127.0.0.1:{port}", folder / "broker.log")
    with broker.log.open("wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(config)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _await_answer(process, broker)
        yield broker
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the whole test session; topics that tests create must have names of their own."""
    yield from run_broker(tmp_path_factory.mktemp("broker"))
