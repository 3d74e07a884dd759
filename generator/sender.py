"""Records to Kafka: acknowledged by all in-sync replicas, in order, each once, counted by callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.partitioner.default import murmur2

from generator.visits import Record

# Records on the way to the broker. The client has no memory limit of its own: without this one, a paused
# broker would let `rate: 0` fill the memory.
MAX_UNACKNOWLEDGED = 20_000
_REQUEST_TIMEOUT_SECONDS = 15


class BrokerError(Exception):
    """The broker or the topic cannot be reached, or refused a record; the message is one line."""


@lru_cache(maxsize=100_000)
def _hash(key: bytes) -> int:
    return int(murmur2(key)) & 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Partition of a key: the choice of the client's own default partitioner (murmur2, as in Java).

    Made here because it remembers the hash of a visit's key, which the client would make again for each view.
    """
    return _hash(key) % partitions


class Sender:
    """A producer for one topic. `sent` counts records handed to it, `acknowledged` those the broker has."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        wait_seconds: float,
        delivery_timeout_seconds: float,
        stopped: Callable[[], bool],
    ) -> None:
        """Wait for broker and topic. Raises BrokerError after `wait_seconds`, or once `stopped()` says so."""
        self.topic = topic
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.first_error: BaseException | None = None
        self._delivery_timeout_seconds = delivery_timeout_seconds
        self._producer, self._partitions = _connect(bootstrap, topic, wait_seconds, delivery_timeout_seconds, stopped)

    def send(self, record: Record) -> None:
        """Hand a record over; blocks while too many are on the way. Raises BrokerError once one has failed."""
        while self.sent - self.acknowledged - self.failed >= MAX_UNACKNOWLEDGED:
            self.check()
            time.sleep(0.002)
        self.check()
        partition = partition_of(record.key, self._partitions)
        future = self._producer.send(self.topic, record.value, record.key, None, partition, record.timestamp)
        self.sent += 1
        future.add_callback(self._on_acknowledged)
        future.add_errback(self._on_failed)

    def check(self) -> None:
        """Raise BrokerError when the broker refused a record or did not answer within the delivery timeout."""
        if self.first_error is not None:
            raise BrokerError(f"a record was not acknowledged: {_reason(self.first_error)}")

    def finish(self) -> None:
        """Wait, up to the delivery timeout, until each record is acknowledged or has failed."""
        deadline = time.monotonic() + self._delivery_timeout_seconds + 1
        try:
            self._producer.flush(timeout=self._delivery_timeout_seconds)
        except KafkaError as error:
            self.first_error = self.first_error or error
        # flush returns with the batches; the last callbacks may still be running.
        while self.sent > self.acknowledged + self.failed and time.monotonic() < deadline and not self.first_error:
            time.sleep(0.01)
        self._producer.close(timeout=1)

    def _on_acknowledged(self, _metadata: object) -> None:
        self.acknowledged += 1

    def _on_failed(self, error: BaseException) -> None:
        self.failed += 1
        self.first_error = self.first_error or error


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _connect(
    bootstrap: str, topic: str, wait_seconds: float, delivery_timeout_seconds: float, stopped: Callable[[], bool]
) -> tuple[Any, int]:
    """Make a producer and ask for the topic's number of partitions, again and again until the time is up."""
    deadline = time.monotonic() + wait_seconds
    producer = None
    problem = f"Kafka at {bootstrap} does not answer"
    while True:
        try:
            producer = producer or _producer(bootstrap, delivery_timeout_seconds)
            if partitions := producer.partitions_for(topic):
                return producer, len(partitions)
            problem = f"topic {topic} does not exist at {bootstrap}"
        except KafkaError as error:
            if producer is not None:
                problem = f"topic {topic} cannot be found at {bootstrap} ({type(error).__name__})"
        if stopped() or time.monotonic() >= deadline:
            raise BrokerError(f"{problem} (waited {wait_seconds:g} s); start it with scripts/up.sh")
        time.sleep(min(0.5, max(0.0, deadline - time.monotonic())))


def _producer(bootstrap: str, delivery_timeout_seconds: float) -> Any:
    return KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id="generator",
        # A record counts once every in-sync replica has it ...
        acks="all",
        # ... and a retry after a lost answer must not write it twice: the broker drops what it has seen.
        enable_idempotence=True,
        # One request at a time: after a broker restart there is never more than one batch in doubt.
        max_in_flight_requests_per_connection=1,
        # Retries go on until this timeout; a record without an answer by then has failed.
        delivery_timeout_ms=int(delivery_timeout_seconds * 1000),
        request_timeout_ms=int(min(_REQUEST_TIMEOUT_SECONDS, delivery_timeout_seconds) * 1000),
        retry_backoff_ms=100,
        # A restarted broker is found again within a second and not after half a minute.
        reconnect_backoff_max_ms=1000,
        linger_ms=5,
        batch_size=131_072,
        max_block_ms=2_000,
        bootstrap_timeout_ms=3_000,
        # Topics are made with their own partitions and retention; never by chance.
        allow_auto_create_topics=False,
        # Nobody reads the client's own metrics; keeping them costs a third of the rate.
        metrics_enabled=False,
    )
