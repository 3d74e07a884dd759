"""Fill the topic `visits` with the generator's own visits: as fast as this machine can, or at a rate.

Usage: python -m benchmarks.fill RECORDS [VISITS_PER_SECOND]

The generator's producer is paced for demos; here librdkafka sends what the generator makes. Prints how many
records the broker acknowledged; exit code 1 if that is not all.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace

from benchmarks.faultless import Topics
from faultline.settings import Settings
from generator.config import config_of
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
    config = replace(
        config_of([], settings),
        total=total,
        # Event time goes on as the clock does; as fast as possible, it has steps of its own.
        rate=0 if rate == math.inf else rate,
        start=START,
        active_visits=VISITS_AT_A_TIME,
        late_percent=PERCENT_LATE,
        unparsable_percent=PERCENT_UNPARSABLE,
    )
    topics, topic = Topics(settings.bootstrap), settings.text("VISITS_TOPIC")
    began = time.monotonic()
    for number, record in enumerate(stream(config), start=1):
        topics.send(topic, record.key, record.value, record.timestamp)
        if number % _POLL_EVERY == 0:
            due = began + number / rate
            topics.poll()
            # It returns at each acknowledgement.
            while (early := due - time.monotonic()) > 0:
                topics.poll(early)
        if number % 100_000 == 0:
            print(f"fill: {number:,} of {total:,}", file=sys.stderr)
    topics.flush()
    acknowledged = topics.acknowledged.get(topic, 0)
    print(acknowledged)
    return 0 if acknowledged == total else 1


if __name__ == "__main__":
    sys.exit(main())
