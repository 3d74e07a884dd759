"""A real Kafka broker for one lab: free ports, its data in the lab's folder, stopped with the lab."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from faultline.settings import Settings
from faultline.stack.broker import own_broker
from faultline.waiting import wait_until

_REQUEST_SECONDS = 30


@dataclass(frozen=True)
class Broker:
    """A running broker. `bootstrap`: `host:port`; `environ`: what programs of the project need to reach it."""

    bootstrap: str
    admin: AdminClient
    environ: dict[str, str]
    log: Path
    retention_ms: str

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        """Create a topic that keeps its records forever, unless `config` (dots as underscores) says otherwise."""
        # Record timestamps are event times: with a limit, records of a past day would be deleted at once.
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
        def reached() -> bool:
            return condition(self.admin.list_topics(timeout=_REQUEST_SECONDS).topics)

        wait_until(reached, f"{what} (log: {self.log})", seconds=_REQUEST_SECONDS)


@contextmanager
def running_broker(folder: Path, settings: Settings) -> Iterator[Broker]:
    """Start a broker that keeps everything in `folder`, and stop it at the end, also after an error.

    Raises StackError when it ends, TimedOut when it does not answer.
    """
    with own_broker(folder, os.environ, settings.text("BIND_ADDRESS")) as own:
        admin = AdminClient({"bootstrap.servers": own.bootstrap, "log_level": 0})
        yield Broker(own.bootstrap, admin, own.environ, own.log, settings.text("TOPIC_RETENTION_MS"))
