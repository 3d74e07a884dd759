"""Fill the topic `visits` so that as many windows are open as there are visit_ids, and none closes.

Usage: python -m benchmarks.open_windows WINDOWS [STEP [FIRST]]

Sends a visit for each STEP-th of the WINDOWS visit_ids, from number FIRST on; by default for each of them. All event
times are in one window, so a second call changes windows that are open already. Prints how many records the broker
acknowledged; exit code 1 if that is not all.
"""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Iterator

from benchmarks.faultless import START, Topics
from faultline.settings import Settings
from generator.pools import make_pools
from generator.visits import ActiveVisit, Record

_SEED = 7
_USERS, _PAGES = 500, 50
_POLL_EVERY = 1000


def visit_id(number: int) -> str:
    """The same id for a number each time; random as real ones, since RocksDB makes consecutive ones small."""
    return str(uuid.UUID(int=random.Random(number).getrandbits(128), version=4))


def visits(windows: int, step: int, first: int, window_ms: int) -> Iterator[Record]:
    """Yield a visit for each `step`-th visit_id; their event times go through the window again and again."""
    pools, rng = make_pools(_SEED, _USERS, _PAGES), random.Random(_SEED)
    for number in range(first, windows, step):
        event_time = START + number % window_ms
        visit = ActiveVisit(rng, pools, 1, event_time, visit_id=visit_id(number))
        yield Record(visit.key, visit.view(rng, pools, event_time).encode(), event_time, "on time")


def main() -> int:
    """Run the command line; returns the exit code."""
    windows, step, first = (int(word) for word in [*sys.argv[1:], *("1", "0")[len(sys.argv) - 2 :]])
    settings = Settings()
    topics, topic = Topics(settings.bootstrap), settings.text("VISITS_TOPIC")
    for sent, record in enumerate(visits(windows, step, first, settings.number("FLINK_WINDOW_SECONDS") * 1000)):
        topics.send(topic, record.key, record.value, record.timestamp)
        if sent % _POLL_EVERY == 0:
            topics.poll()
    topics.flush()
    acknowledged = topics.acknowledged.get(topic, 0)
    print(acknowledged)
    return 0 if acknowledged == len(range(first, windows, step)) else 1


if __name__ == "__main__":
    sys.exit(main())
