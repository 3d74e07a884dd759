"""Transactions of a topic, by Kafka's own admin requests to the broker (KIP-664), and the abort of a transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import IsolationLevel, KafkaProducer, OffsetSpec, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, TransactionalIdNotFoundError

from faultline.inspector.transactions.errors import NotKnown
from faultline.inspector.transactions.model import Held, OpenTransaction, Stop

_ANSWER_MS = 15_000


class Broker:
    """One broker address, with the questions of this program."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        # The client would log each lost connection; our one line is enough.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        with self._asking("does not answer"):
            self._admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), request_timeout_ms=_ANSWER_MS)

    def close(self) -> None:
        """Close the connections."""
        self._admin.close()

    @contextmanager
    def _asking(self, failure: str) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            raise NotKnown(f"the broker at {self.bootstrap} {failure} ({error}); see scripts/status.sh") from None

    def partitions(self, topic: str) -> list[TopicPartition]:
        """List the partitions of a topic. Raises NotKnown when there is no such topic."""
        with self._asking(f"did not describe topic {topic}"):
            described = {each["name"]: each for each in self._admin.describe_topics([topic])}
        found = [each["partition_index"] for each in described.get(topic, {}).get("partitions", [])]
        if not found:
            raise NotKnown(f"the broker at {self.bootstrap} has no topic {topic}; see scripts/status.sh")
        return [TopicPartition(topic, number) for number in sorted(found)]

    def stops(self, partitions: list[TopicPartition]) -> list[Stop]:
        """Return the last stable offset and the end of each partition."""
        specs = dict.fromkeys(partitions, OffsetSpec.LATEST)
        with self._asking("did not say where the topic ends"):
            # Stable offsets first: a commit in between then shows records as open, never the other way round.
            stable = self._admin.list_partition_offsets(specs, isolation_level=IsolationLevel.READ_COMMITTED)
            ends = self._admin.list_partition_offsets(specs, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return [Stop(each.partition, stable[each].offset, ends[each].offset) for each in partitions]

    def open_transactions(self, partitions: list[TopicPartition]) -> list[OpenTransaction]:
        """List the open transactions, the oldest first."""
        with self._asking("did not say which transactions are open"):
            held: dict[tuple[int, int], list[Held]] = {}
            for partition, state in sorted(self._admin.describe_producers(partitions).items()):
                for producer in state.active_producers:
                    if producer.current_transaction_start_offset >= 0:
                        first = Held(partition.partition, producer.current_transaction_start_offset)
                        held.setdefault((producer.producer_id, producer.producer_epoch), []).append(first)
            if not held:
                return []
            ids = {
                each.producer_id: each.transactional_id
                for listed in self._admin.list_transactions(producer_id_filters=[pid for pid, _ in held]).values()
                for each in listed
            }
            found = [self._described(ids.get(pid, ""), pid, epoch, firsts) for (pid, epoch), firsts in held.items()]
        return sorted(found, key=lambda each: (each.since or 0, each.label))

    def _described(self, name: str, producer_id: int, epoch: int, held: list[Held]) -> OpenTransaction:
        try:
            found = self._admin.describe_transactions([name])[name] if name else None
        except TransactionalIdNotFoundError:
            found = None
        if found is None:
            return OpenTransaction("", producer_id, epoch, "", None, None, held)
        since = found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None
        ends_at = None if since is None else since + found.transaction_timeout_ms
        return OpenTransaction(name, producer_id, epoch, str(found.state.value), since, ends_at, held)

    def abort(self, transaction: OpenTransaction) -> None:
        """Take over the transactional id, as a restarted producer does: the coordinator then aborts what is open."""
        with self._asking(f"did not abort {transaction.label}"):
            producer = KafkaProducer(
                bootstrap_servers=self.bootstrap.split(","), transactional_id=transaction.transactional_id
            )
            try:
                producer.init_transactions()
            finally:
                producer.close()
