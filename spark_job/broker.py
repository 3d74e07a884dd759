"""Wait for broker and topic before Spark starts: Spark's own attempts take minutes and end in a stack trace."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from spark_job.options import UserError


def wait_for_topic(bootstrap: str, topic: str, wait_seconds: float, stopped: Callable[[], bool]) -> None:
    """Return once the broker knows the topic. Raises UserError when it does not in time."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    deadline = time.monotonic() + wait_seconds
    consumer: Any = None
    while True:
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
        if stopped() or time.monotonic() >= deadline:
            raise UserError(f"{problem} (waited {wait_seconds:g} s); start it with scripts/up.sh")
        time.sleep(min(0.5, max(0.0, deadline - time.monotonic())))
