"""Wait for broker and topic before Spark starts: Spark's own attempts take minutes and end in a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from faultline.waiting import attempts
from spark_job.options import UserError


def wait_for_topic(bootstrap: str, topic: str, wait_seconds: float, stopped: Callable[[], bool]) -> None:
    """Return once the broker knows the topic. Raises UserError when it does not in time."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    consumer: Any = None
    for _ in attempts(wait_seconds, 0.5):
        problem = f"Kafka at {bootstrap} does not answer"
        try:
            consumer = consumer or KafkaConsumer(
                bootstrap_servers=bootstrap,
                # Metadata only: no consumer group, no committed offsets.
                group_id=None,
                enable_auto_commit=False,
                allow_auto_create_topics=False,
                bootstrap_timeout_ms=2000,
                request_timeout_ms=5000,
            )
            if topic in consumer.topics():
                consumer.close()
                return
            problem = f"topic {topic} does not exist at {bootstrap}"
        except KafkaError:
            consumer = None
        if stopped():
            break
    raise UserError(f"{problem} (waited {wait_seconds:g} s); start it with scripts/up.sh")
