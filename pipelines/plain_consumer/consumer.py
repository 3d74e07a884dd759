"""A plain consumer, as tutorials write it: poll, append each page view to a file, commit the offsets afterwards."""

import json
import sys

from kafka import KafkaConsumer

bootstrap, topic, path = sys.argv[1:]
consumer = KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap,
    group_id="page_views",
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    session_timeout_ms=6000,
    heartbeat_interval_ms=2000,
)
with open(path, "a", buffering=1) as file:  # noqa: PTH123 - as tutorials write it
    while True:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                visit = json.loads(record.value)
                row = {name: visit[name] for name in ("visit_id", "event_time", "page")}
                file.write(json.dumps(row) + "\n")
        consumer.commit()
