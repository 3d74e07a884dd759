"""A real Kafka broker of the lab's own: free ports, its data in the lab's folder, gone with the lab."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from contract.settings import ROOT, Settings
from labs.errors import LabError
from labs.parts import BROKER, require

_START_SECONDS = 60
_REQUEST_SECONDS = 30
_PORTS = ("KAFKA_PORT", "KAFKA_CONTAINER_PORT", "KAFKA_CONTROLLER_PORT")


@dataclass(frozen=True)
class Broker:
    """A running broker. `bootstrap`: `host:port`; `environ`: what programs of the project need to reach it."""

    bootstrap: str
    admin: AdminClient
    environ: dict[str, str]
    log: Path
    retention_ms: str

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        """Create a topic that keeps its records for ever, unless `config` (dots as underscores) says otherwise."""
        # Record timestamps are event times: with a limit, records of a past day would go at once.
        settings = {"retention.ms": self.retention_ms} | {key.replace("_", "."): value for key, value in config.items()}
        topics = [NewTopic(name, partitions, 1, config=settings)]
        for future in self.admin.create_topics(topics, operation_timeout=_REQUEST_SECONDS).values():
            future.result(timeout=_REQUEST_SECONDS)
        self._await(lambda names: name in names, f"topic {name}")

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until the broker no longer knows it."""
        for future in self.admin.delete_topics([name], operation_timeout=_REQUEST_SECONDS).values():
            future.result(timeout=_REQUEST_SECONDS)
        self._await(lambda names: name not in names, f"the end of topic {name}")

    def _await(self, condition: Callable[[Container[str]], bool], what: str) -> None:
        deadline = time.monotonic() + _REQUEST_SECONDS
        while not condition(self.admin.list_topics(timeout=_REQUEST_SECONDS).topics):
            if time.monotonic() > deadline:
                raise LabError(f"waited {_REQUEST_SECONDS} s in vain for {what}; see {self.log}")
            time.sleep(0.1)


def free_ports(address: str, count: int) -> list[int]:
    """Return ports that nothing listens on now; all are held open together, so no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((address, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def running_broker(folder: Path, settings: Settings) -> Iterator[Broker]:
    """Start a broker that keeps everything in `folder`, and stop it at the end, whatever the end is.

    Raises LabError: its jars or Java are missing, or it does not answer.
    """
    require(BROKER)
    folder.mkdir(parents=True, exist_ok=True)
    address = settings.text("BIND_ADDRESS")
    ports = dict(zip(_PORTS, map(str, free_ports(address, len(_PORTS))), strict=True))
    environ = ports | {"KAFKA_BOOTSTRAP": f"{address}:{ports['KAFKA_PORT']}"}
    admin = AdminClient({"bootstrap.servers": environ["KAFKA_BOOTSTRAP"], "log_level": 0})
    broker = Broker(
        environ["KAFKA_BOOTSTRAP"], admin, environ, folder / "broker.log", settings.text("TOPIC_RETENTION_MS")
    )
    command = [sys.executable, "-m", "labs.keeper", str(ROOT / "services" / "kafka.sh")]
    with broker.log.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=os.environ | environ | {"KAFKA_DATA": str(folder / "data")},
        )
    try:
        _await_answer(process, broker)
        yield broker
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=_START_SECONDS)


def _await_answer(process: subprocess.Popen[bytes], broker: Broker) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            broker.admin.list_topics(timeout=1)
            return
        except KafkaException:
            if process.poll() is not None or time.monotonic() > deadline:
                last = broker.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
                raise LabError(
                    f"the lab's broker did not start: {''.join(last) or 'it said nothing'}; see {broker.log}"
                ) from None
