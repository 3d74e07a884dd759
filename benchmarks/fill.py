"""Fill the topic `visits` with the generator's own visits: as fast as this machine can, or at a rate.

Usage: python -m benchmarks.fill RECORDS [VISITS_PER_SECOND]

The generator's producer is paced for demos; here librdkafka sends what the generator makes. Prints how many
records the broker acknowledged; exit code 1 if that is not all.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import replace
from typing import Any

from confluent_kafka import Producer

from faultline.settings import Settings
from generator.config import add_flags, load
from generator.visits import stream

VISITS_AT_A_TIME = 2000
PERCENT_LATE = 1.0
PERCENT_UNPARSABLE = 1.0
START = "2026-01-01T00:00:00Z"
_POLL_EVERY = 1000


def main() -> int:
    """Run the command line; returns the exit code."""
    total, rate = int(sys.argv[1]), float((sys.argv[2:] or ["inf"])[0])
    settings = Settings()
    defaults = argparse.ArgumentParser()
    add_flags(defaults)
    config = replace(
        load(defaults.parse_args([]), settings),
        total=total,
        # Event time goes on as the clock does; as fast as possible, it has steps of its own.
        rate=0 if rate == math.inf else rate,
        start=START,
        active_visits=VISITS_AT_A_TIME,
        late_percent=PERCENT_LATE,
        unparsable_percent=PERCENT_UNPARSABLE,
    )
    producer = Producer(
        {
            "bootstrap.servers": settings.bootstrap,
            # Retries with a broker that has just started do not matter; missing acknowledgements are counted.
            "log_level": 3,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            # As the JVM clients choose it, so that a key has the same partition as with the generator.
            "partitioner": "murmur2_random",
        }
    )
    acknowledged = 0

    def count(error: object, _message: Any) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    topic = settings.text("VISITS_TOPIC")
    began = time.monotonic()
    for number, record in enumerate(stream(config), start=1):
        while True:
            try:
                producer.produce(topic, record.value, record.key, timestamp=record.timestamp, on_delivery=count)
                break
            except BufferError:
                producer.poll(0.1)
        if number % _POLL_EVERY == 0:
            due = began + number / rate
            producer.poll(0)
            # It returns at each acknowledgement.
            while (early := due - time.monotonic()) > 0:
                producer.poll(early)
        if number % 100_000 == 0:
            print(f"fill: {number:,} of {total:,}", file=sys.stderr)
    producer.flush()
    print(acknowledged)
    return 0 if acknowledged == total else 1


if __name__ == "__main__":
    sys.exit(main())
