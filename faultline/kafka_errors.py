"""Errors of the Kafka client librdkafka (confluent-kafka) in words."""

from __future__ import annotations

from confluent_kafka import KafkaError


def said(error: Exception) -> str:
    """Say what the client's error says, without its code and the spelling of its class."""
    cause = error.args[0] if error.args else None
    return cause.str() if isinstance(cause, KafkaError) else str(error) or type(error).__name__
