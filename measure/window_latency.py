"""How long after a window's end a reader gets it.

Reads `visit_windows` from its present end until the windows of so many window ends have come, and prints one line of
JSON: {"read": "committed", "windows": 31, "ends": 3, "least_seconds": 8.1, "median_seconds": 9.0, "most_seconds": 11.2,
"last_at": 1795358715165}. Seconds are from the end of a window, in event time, to the moment when the reader has it, by
the clock of this machine; that means something while the generator sends visits at their event time. `last_at` is that
moment for the last one, in milliseconds since the epoch. Exit codes: 0 measured, 2 not within the wait.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contract.settings import Settings, SettingsError
from contract.visit import CLOSING_PREFIX
from verdict.cluster import Cluster
from verdict.model import Unknown

_POLL_SECONDS = 0.2


class MeasureError(Exception):
    """Too few windows came; the message says how many."""


def arrivals(settings: Settings, isolation: str, seconds: float) -> Iterator[tuple[float, float]]:
    """Yield, of each window that comes within `seconds`, its end and its arrival, in seconds since the epoch."""
    topic = settings.text("VISIT_WINDOWS_TOPIC")
    ends = Cluster(settings.bootstrap).spans(topic, committed=isolation == "read_committed")
    # The topic's present end, as this reader sees it; the group is never joined.
    consumer = Consumer(
        {
            "bootstrap.servers": settings.bootstrap, "group.id": "window_latency", "enable.auto.commit": False,
            "isolation.level": isolation, "fetch.wait.max.ms": 50, "log_level": 0,
        }
    )  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, partition, span.end) for partition, span in ends.items()])
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            if message is None or message.error() is not None:
                continue
            window = json.loads(message.value() or b"")
            if not window["visit_id"].startswith(CLOSING_PREFIX):
                yield datetime.fromisoformat(window["window_end"]).timestamp(), time.time()
    finally:
        consumer.close()


def measure(settings: Settings, isolation: str, wanted: int, seconds: float) -> dict[str, object]:
    """Return the figures. Raises MeasureError when fewer window ends than `wanted` come within `seconds`."""
    latencies: list[float] = []
    ends: set[float] = set()
    last = 0.0
    for end, arrived in arrivals(settings, isolation, seconds):
        latencies.append(arrived - end)
        ends.add(end)
        last = arrived
        if len(ends) >= wanted:
            break
    if len(ends) < wanted:
        raise MeasureError(
            f"only {len(ends)} of {wanted} window ends came within {seconds:g} s; "
            "do the generator and the Flink job run? see scripts/status.sh"
        )
    return {
        "read": isolation.removeprefix("read_"),
        "windows": len(latencies),
        "ends": len(ends),
        "least_seconds": round(min(latencies), 1),
        "median_seconds": round(statistics.median(latencies), 1),
        "most_seconds": round(max(latencies), 1),
        "last_at": round(last * 1000),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print one line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="window_latency", description=__doc__, allow_abbrev=False)
    parser.add_argument("--ends", type=int, default=3, metavar="N", help="window ends to see (default: %(default)s)")
    parser.add_argument("--uncommitted", action="store_true", help="read uncommitted records too")
    parser.add_argument("--wait", type=float, default=120.0, metavar="SECONDS", help="at most (default: %(default)g)")
    chosen = parser.parse_args(arguments)
    isolation = "read_uncommitted" if chosen.uncommitted else "read_committed"
    try:
        print(json.dumps(measure(Settings(), isolation, chosen.ends, chosen.wait)))
    except (MeasureError, Unknown, SettingsError, KafkaException) as error:
        sys.stderr.write(f"window_latency: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
