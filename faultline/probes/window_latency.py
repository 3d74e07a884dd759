"""Seconds from the end of a window until a reader gets it.

Reads `visit_windows` from its present end until windows with enough different ends have come, and prints one line of
JSON: {"read": "committed", "windows": 31, "ends": 3, "least_seconds": 8.1, "mean_seconds": 9.0, "most_seconds": 11.2,
"event_time_ahead_seconds": 0.0, "last_at": 1795358715165}. Seconds are from the moment when visits of a window's end
are sent to the moment when the reader has the window, by the clock of this machine. A generator that was started after
scripts/settle.sh sends visits whose event time is ahead of that clock; how far is measured on the visits that come
meanwhile, and taken into account. `mean_seconds` is the mean of the means of each window end. `last_at` is when the
last window came, in milliseconds since the epoch. Exit codes: 0 measured, 2 not within the wait.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from faultline.command import CommandError, Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from confluent_kafka import TopicPartition

from faultline.formats.visit import CLOSING_PREFIX
from faultline.settings import Settings
from faultline.topic_reader import reader
from faultline.verdict.cluster import Cluster

_POLL_SECONDS = 0.2


class MeasureError(CommandError):
    """Too few windows came; the message says how many."""


@dataclass(frozen=True)
class Arrival:
    """`event_time`: of a visit, or the end of a window; `at`: when this reader got it. Seconds since the epoch."""

    is_window: bool
    event_time: float
    at: float


def arrivals(settings: Settings, isolation: str, seconds: float) -> Iterator[Arrival]:
    """Yield the visits and windows that come within `seconds`, closing ones left out."""
    visits, windows = settings.text("VISITS_TOPIC"), settings.text("VISIT_WINDOWS_TOPIC")
    cluster = Cluster(settings.bootstrap)
    # The topics' present ends, as this reader sees them; the group is never joined.
    places = [
        TopicPartition(topic, partition, span.end)
        for topic in (visits, windows)
        for partition, span in cluster.spans(topic, committed=isolation == "read_committed").items()
    ]
    consumer = reader(settings.bootstrap, committed=isolation == "read_committed", fetch_wait_max_ms=50)
    try:
        consumer.assign(places)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = consumer.poll(_POLL_SECONDS)
            if message is None or message.error() is not None:
                continue
            if message.topic() == visits:
                # The generator's timestamps are event times.
                yield Arrival(False, message.timestamp()[1] / 1000, time.time())
                continue
            window = json.loads(message.value() or b"")
            if not window["visit_id"].startswith(CLOSING_PREFIX):
                yield Arrival(True, datetime.fromisoformat(window["window_end"]).timestamp(), time.time())
    finally:
        consumer.close()


def measure(settings: Settings, isolation: str, wanted: int, seconds: float) -> dict[str, object]:
    """Return the figures. Raises MeasureError when fewer window ends than `wanted` come within `seconds`."""
    windows: list[Arrival] = []
    ends: set[float] = set()
    ahead = -math.inf
    for arrival in arrivals(settings, isolation, seconds):
        if arrival.is_window:
            windows.append(arrival)
            ends.add(arrival.event_time)
        else:
            ahead = max(ahead, arrival.event_time - arrival.at)
        # A window may come before the first visit, by which its latency is known.
        if len(ends) >= wanted and ahead > -math.inf:
            break
    if len(ends) < wanted:
        raise MeasureError(
            f"only {len(ends)} of {wanted} window ends came within {seconds:g} s; "
            "do the generator and the Flink job run? see scripts/status.sh"
        )
    if ahead == -math.inf:
        raise MeasureError("no visit came meanwhile; start the generator: scripts/generator_start.sh")
    latencies = [window.at - window.event_time + ahead for window in windows]
    # Of each window end first: one with many windows does not count more.
    by_end: dict[float, list[float]] = {}
    for window, latency in zip(windows, latencies, strict=True):
        by_end.setdefault(window.event_time, []).append(latency)
    return {
        "read": isolation.removeprefix("read_"),
        "windows": len(latencies),
        "ends": len(ends),
        "least_seconds": round(min(latencies), 1),
        "mean_seconds": round(statistics.mean(map(statistics.mean, by_end.values())), 1),
        "most_seconds": round(max(latencies), 1),
        "event_time_ahead_seconds": round(ahead, 1),
        "last_at": round(windows[-1].at * 1000),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print one line, and return the exit code."""
    parser = Flags("window_latency.sh", prog="scripts/window_latency.sh", description=__doc__)
    parser.add_argument("--ends", type=int, default=3, metavar="N", help="window ends to see (default: %(default)s)")
    parser.add_argument("--uncommitted", action="store_true", help="read uncommitted records too")
    parser.add_argument("--wait", type=float, default=120.0, metavar="SECONDS", help="at most (default: %(default)g)")
    chosen = parser.parse_args(arguments)
    isolation = "read_uncommitted" if chosen.uncommitted else "read_committed"
    print(json.dumps(measure(Settings(), isolation, chosen.ends, chosen.wait)))
    return 0


if __name__ == "__main__":
    run("window_latency.sh", main)
