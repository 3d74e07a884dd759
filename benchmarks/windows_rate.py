"""How fast the Flink job reads the topic, from the offsets that it commits with each checkpoint.

Usage: python -m benchmarks.windows_rate RECORDS LIMIT_SECONDS

Waits until the job's group has committed RECORDS, then prints one line of JSON: `records` between the first
and the last commit seen, `seconds` between them, `records_per_second`. What was read before the first commit
does not count: neither the start of the job nor its first records. Exit code 1 if it has not read all by then.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, TopicPartition

from contract.settings import Settings

POLL_SECONDS = 0.1


def main() -> int:
    """Run the command line; returns the exit code."""
    wanted, limit = int(sys.argv[1]), float(sys.argv[2])
    settings = Settings()
    consumer = Consumer({"bootstrap.servers": settings.bootstrap, "group.id": settings.text("FLINK_GROUP_ID")})
    topic = settings.text("VISITS_TOPIC")
    partitions = [TopicPartition(topic, number) for number in range(settings.number("TOPIC_PARTITIONS"))]
    began = time.monotonic()
    first: tuple[float, int] | None = None
    before = None
    while time.monotonic() - began < limit:
        now = time.monotonic()
        committed = sum(max(entry.offset, 0) for entry in consumer.committed(partitions, timeout=10))
        if before is None:
            # An earlier run of the same group had read everything: wait until this one has begun anew.
            before = committed
        if before >= wanted and committed >= wanted and first is None:
            time.sleep(POLL_SECONDS)
            continue
        if first is None and 0 < committed < wanted:
            first = (now, committed)
        if first is not None and committed >= wanted:
            records, seconds = committed - first[1], now - first[0]
            print(
                json.dumps(
                    {"records": records, "seconds": round(seconds, 2), "records_per_second": int(records / seconds)}
                )
            )
            return 0
        time.sleep(POLL_SECONDS)
    print(f"windows: the job had not committed {wanted:,} records after {limit:.0f} s", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
