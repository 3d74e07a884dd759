"""A broker for tests: real Kafka with the shipped configuration, in a temporary folder, on free ports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from faultline.stack.broker import own_broker
from faultline.waiting import wait_until

_REQUEST_SECONDS = 60


@dataclass(frozen=True)
class Broker:
    """A running broker: its address, and its log for when something fails."""

    bootstrap: str
    log: Path

    def create_topics(self, *names: str, partitions: int = 2) -> None:
        """Create topics and wait until they are there."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
            future.result(timeout=_REQUEST_SECONDS)
        # The controller has answered; the broker learns of them a moment later.
        wait_until(lambda: set(names) <= set(admin.list_topics(timeout=_REQUEST_SECONDS).topics), "topics", seconds=60)


def run_broker(folder: Path) -> Iterator[Broker]:
    """Start a broker that keeps everything in a folder, yield it, and stop it."""
    with own_broker(folder, os.environ, "127.0.0.1") as own:
        yield Broker(own.bootstrap, own.log)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the whole test session; topics that tests create must have names of their own."""
    yield from run_broker(tmp_path_factory.mktemp("broker"))
