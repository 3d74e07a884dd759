"""Commit a prepared transaction as Flink's committer does, or abort one; done when the broker has ended it."""

from __future__ import annotations

from typing import Any

from kafka import TopicPartition
from py4j.protocol import Py4JJavaError

from faultline.inspector.flink.jvm import java_cause
from faultline.inspector.transactions.broker import Broker
from faultline.inspector.transactions.errors import NotKnown
from faultline.inspector.transactions.model import COMMIT, OpenTransaction
from faultline.waiting import attempts

_LIMIT_SECONDS = 60.0
_POLL_SECONDS = 0.1
_BYTES = "org.apache.flink.kafka.shaded.org.apache.kafka.common.serialization.ByteArraySerializer"


def end(jvm: Any, broker: Broker, act: str, transaction: OpenTransaction, partitions: list[TopicPartition]) -> None:
    """Commit or abort a transaction and wait until it is not open any more. Raises NotKnown when that fails."""
    if act == COMMIT:
        _commit(jvm, broker.bootstrap, transaction)
    else:
        broker.abort(transaction)
    name = (transaction.producer_id, transaction.epoch)
    for _ in attempts(_LIMIT_SECONDS, _POLL_SECONDS):
        if name not in {(each.producer_id, each.epoch) for each in broker.open_transactions(partitions)}:
            return
    raise NotKnown(f"{transaction.label} is still open {_LIMIT_SECONDS:g} s after the {act}; look again")


def _commit(jvm: Any, bootstrap: str, transaction: OpenTransaction) -> None:
    """Use Flink's producer, which alone can resume a transaction that another process has prepared."""
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", bootstrap)
    properties.setProperty("key.serializer", _BYTES)
    properties.setProperty("value.serializer", _BYTES)
    try:
        flink = jvm.org.apache.flink.connector.kafka.sink.internal
        producer = flink.FlinkKafkaInternalProducer(properties, transaction.transactional_id)
        try:
            producer.resumeTransaction(transaction.producer_id, transaction.epoch)
            producer.commitTransaction()
        finally:
            producer.close()
    except Py4JJavaError as error:
        raise NotKnown(f"Flink's producer could not commit {transaction.label}: {java_cause(error)}") from None
