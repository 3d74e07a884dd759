"""Compare the topics after a row with the reader that watched: open records, and windows that it saw or missed.

Usage: python -m faultline.probes.reads_compared FOLDER

FOLDER has `seen.jsonl` and `begin.json` of faultline/probes/watch.py, which still reads: it gets some seconds to read
up to the end. Prints one line of JSON: `open`, the records at the end of each topic of the job that are written and not
committed; `seen`, how many committed windows the reader saw since it began, of which `different` ones are in the topic
now and `missing` from it; and `unseen`, those that it has not seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from faultline.command import run
from faultline.formats.digest import record_digest
from faultline.probes.open_transactions import positions
from faultline.probes.watch import begin_of
from faultline.settings import Settings
from faultline.verdict.cluster import Cluster
from faultline.verdict.records import Span
from faultline.waiting import attempts

_READER_SECONDS = 20.0


def still_open(settings: Settings) -> dict[str, int]:
    """Return the records of open transactions by topic. Raises Unknown when the broker does not answer."""
    cluster = Cluster(settings.bootstrap)
    topics = [settings.text(name) for name in ("VISIT_WINDOWS_TOPIC", "VISITS_LATE_TOPIC", "VISITS_REJECTED_TOPIC")]
    return {topic: sum(each["end"] - each["stable"] for each in positions(cluster, topic)) for topic in topics}


def compare(settings: Settings, folder: Path) -> dict[str, int]:
    """Read the same range again and return the numbers. Raises Unknown when the broker does not answer."""
    there = _read(settings, begin_of(folder) or {})
    for _ in attempts(_READER_SECONDS, 0.5):
        seen = _seen(folder)
        if there.keys() <= seen.keys():
            break
    return {
        "seen": len(seen),
        "different": sum(key in there and there[key] != value for key, value in seen.items()),
        "missing": sum(key not in there for key in seen),
        "unseen": sum(key not in seen for key in there),
    }


def _seen(folder: Path) -> dict[tuple[int, int], str]:
    """Digests of the records that the reader saw, by partition and offset; without a last line that is cut short."""
    whole = (folder / "seen.jsonl").read_bytes().rpartition(b"\n")[0]
    records = [json.loads(line) for line in whole.splitlines()]
    return {(each["partition"], each["offset"]): each["digest"] for each in records}


def _read(settings: Settings, begins: Mapping[int, int]) -> dict[tuple[int, int], str]:
    """Digests of the committed records from these offsets on; of a partition that was added later, of all."""
    cluster, topic = Cluster(settings.bootstrap), settings.text("VISIT_WINDOWS_TOPIC")
    ends = cluster.spans(topic, committed=True)
    spans = {each: Span(max(span.begin, begins.get(each, 0)), span.end) for each, span in ends.items()}
    return {
        (record.partition, record.offset): record_digest(record.key, record.value).hex()
        for batch in cluster.read(topic, spans)
        for record in batch.records()
    }


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    settings = Settings()
    print(json.dumps({"open": still_open(settings), **compare(settings, Path(arguments[0]))}))
    return 0


if __name__ == "__main__":
    run("reads_compared", lambda: main(sys.argv[1:]))
