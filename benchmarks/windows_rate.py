"""How fast the Flink job reads the topic, from the offsets that it commits with each checkpoint.

Usage: python -m benchmarks.windows_rate RECORDS LIMIT_SECONDS

Waits until the job's group has committed RECORDS, then prints one line of JSON: `records` between two commits,
`seconds` between them, `records_per_second`. The first is the first one past half of the records: by then the JVM
has compiled the code that was generated for this job. The second is the last one before the end: the very last may
come 10 s later, since a reader with nothing to read sends its commit only when its poll ends. Exit code 1 when the
job has not read all within the limit, or so fast that there are no two commits between.
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
    deadline = time.monotonic() + limit
    half = last = None
    while time.monotonic() < deadline:
        now = time.monotonic()
        committed = sum(max(entry.offset, 0) for entry in consumer.committed(partitions, timeout=10))
        if wanted / 2 <= committed < wanted and (last is None or committed > last[1]):
            last = (now, committed)
            half = half or last
        if committed >= wanted:
            break
        time.sleep(POLL_SECONDS)
    else:
        print(f"windows: the job had not committed {wanted:,} records after {limit:.0f} s", file=sys.stderr)
        return 1
    if half is None or last is None or half == last:
        print("windows: all read between two checkpoints; use more records", file=sys.stderr)
        return 1
    records, seconds = last[1] - half[1], last[0] - half[0]
    print(json.dumps({"records": records, "seconds": round(seconds, 2), "records_per_second": int(records / seconds)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
