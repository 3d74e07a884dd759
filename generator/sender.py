"""Records to Kafka: acknowledged by all in-sync replicas, in order, each once, counted by callbacks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.partitioner.default import murmur2

from faultline.waiting import attempts
from generator.ledger import Ledger, LedgerError
from generator.topic import BrokerError
from generator.visits import Record

# Limit of records in flight to the broker. The client has no memory limit: without this one, `rate: 0` would
# fill the memory while the broker is paused.
MAX_UNACKNOWLEDGED = 20_000
_REQUEST_TIMEOUT_SECONDS = 15


class Connection(NamedTuple):
    """A client of a topic that exists."""

    producer: Any
    topic: str
    partitions: int


@lru_cache(maxsize=100_000)
def _hash(key: bytes) -> int:
    return int(murmur2(key)) & 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Partition of a key: the choice of the client's own default partitioner (murmur2, as in Java).

    Computed here to cache the hash of a visit's key, which the client would compute again for each page view.
    """
    return _hash(key) % partitions


class Sender:
    """Sends to one topic; the ledger line of each record is written first.

    `sent` counts the records handed to the client, `acknowledged` those the broker has.
    """

    def __init__(self, connection: Connection, ledger: Ledger, *, delivery_timeout_seconds: float) -> None:
        self.topic = connection.topic
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self._first_error: BaseException | None = None
        self._producer, self._partitions = connection.producer, connection.partitions
        self._ledger = ledger
        self._delivery_timeout_seconds = delivery_timeout_seconds

    def send(self, record: Record) -> None:
        """Hand a record to the client; blocks while too many are in flight.

        Raises BrokerError once a record has failed, LedgerError once a line could not be written.
        """
        while self.sent - self.acknowledged - self.failed >= MAX_UNACKNOWLEDGED:
            self.check()
            time.sleep(0.002)
        self.check()
        partition = partition_of(record.key, self._partitions)
        number = self._ledger.sent(partition, record)
        try:
            future = self._producer.send(self.topic, record.value, record.key, None, partition, record.timestamp)
        except KafkaError as error:
            raise BrokerError(f"a record could not be sent: {_reason(error)}") from None
        self.sent += 1
        future.add_callback(self._on_acknowledged, number)
        future.add_errback(self._on_failed)

    def check(self) -> None:
        """Raise BrokerError when a record was refused or not answered in time, LedgerError when a line failed."""
        if isinstance(self._first_error, LedgerError):
            raise self._first_error
        if self._first_error is not None:
            raise BrokerError(f"a record was not acknowledged: {_reason(self._first_error)}")

    def flush(self) -> None:
        """Wait, up to the delivery timeout, until each record is acknowledged or has failed."""
        try:
            self._producer.flush(timeout=self._delivery_timeout_seconds)
        except KafkaError as error:
            self._first_error = self._first_error or error
        # flush returns when the batches are sent; the last callbacks may still be running.
        for _ in attempts(self._delivery_timeout_seconds + 1, 0.01):
            if self.sent <= self.acknowledged + self.failed or self._first_error:
                break

    def finish(self) -> None:
        """Flush, and close the client."""
        self.flush()
        self._producer.close(timeout=1)

    def _on_acknowledged(self, number: int, metadata: Any) -> None:
        # In the client's thread, which swallows exceptions.
        try:
            self._ledger.acked(number, metadata.partition, metadata.offset)
        except LedgerError as error:
            self._first_error = self._first_error or error
        self.acknowledged += 1

    def _on_failed(self, error: BaseException) -> None:
        self.failed += 1
        self._first_error = self._first_error or error


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def connect(
    bootstrap: str,
    topic: str,
    *,
    wait_seconds: float,
    delivery_timeout_seconds: float,
    stopped: Callable[[], bool],
) -> Connection:
    """Wait for broker and topic. Raises BrokerError after `wait_seconds`, or once `stopped()` says so."""
    # The client logs each failed attempt of a retry; the errors that matter reach the user through Sender.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    producer = None
    problem = f"Kafka at {bootstrap} does not answer"
    for _ in attempts(wait_seconds, 0.5):
        try:
            producer = producer or _producer(bootstrap, delivery_timeout_seconds)
            if partitions := producer.partitions_for(topic):
                return Connection(producer, topic, len(partitions))
            problem = f"topic {topic} does not exist at {bootstrap}"
        except KafkaError as error:
            if producer is not None:
                problem = f"topic {topic} cannot be found at {bootstrap} ({type(error).__name__})"
        if stopped():
            break
    raise BrokerError(f"{problem} (waited {wait_seconds:g} s); start it with scripts/up.sh")


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
        # Reconnect to a restarted broker within a second, not after half a minute.
        reconnect_backoff_max_ms=1000,
        linger_ms=5,
        batch_size=131_072,
        max_block_ms=2_000,
        bootstrap_timeout_ms=3_000,
        # Topics are created with their own partitions and retention, never automatically.
        allow_auto_create_topics=False,
        # The client's own metrics are not used; keeping them costs a third of the rate.
        metrics_enabled=False,
    )
