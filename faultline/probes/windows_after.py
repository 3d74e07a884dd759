"""Count the committed windows that end after a watermark, below given offsets or the present ends.

Usage: python -m faultline.probes.windows_after WATERMARK [PARTITION:OFFSET...]

These are the windows that a job writes again when it is restored from a checkpoint with that watermark (milliseconds
since the epoch) while the topic ends at those offsets. Prints the number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from faultline.command import run
from faultline.settings import Settings
from faultline.verdict.cluster import Cluster
from faultline.verdict.records import Span


def count(settings: Settings, watermark: int, ends: Mapping[int, int]) -> int:
    """Return the number, without ends up to the present ones. Raises Unknown when the broker does not answer."""
    topic = settings.text("VISIT_WINDOWS_TOPIC")
    cluster = Cluster(settings.bootstrap)
    spans = {
        partition: Span(span.begin, min(span.end, ends.get(partition, 0)) if ends else span.end)
        for partition, span in cluster.spans(topic, committed=True).items()
    }
    found = 0
    for batch in cluster.read(topic, spans):
        for record in batch.records():
            end = datetime.fromisoformat(json.loads(record.value or b"")["window_end"])
            # A window is over once the watermark is its last millisecond.
            found += end.timestamp() * 1000 - 1 > watermark
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the number; returns the exit code."""
    watermark, *places = arguments
    ends = {int(partition): int(offset) for partition, _, offset in (place.partition(":") for place in places)}
    print(count(Settings(), int(watermark), ends))
    return 0


if __name__ == "__main__":
    run("windows_after", lambda: main(sys.argv[1:]))
