"""Look at the topics after a row: what is still open, and whether the reader that watched saw what is there now.

Usage: python -m measure.aftermath FOLDER

FOLDER has `seen.jsonl` of measure/watch.py. Prints one line of JSON: `open`, the records at the end of each topic of
the job that are written and not committed; `seen`, how many committed windows the reader saw, of which `different` ones
are in the topic now, `missing` from it, and `unseen` though they lie between the first and the last that were seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from contract.digest import record_digest
from contract.settings import Settings, SettingsError
from measure.open_transactions import positions
from verdict.cluster import Cluster
from verdict.model import Unknown
from verdict.records import Span


def still_open(settings: Settings) -> dict[str, int]:
    """Return the records of open transactions by topic. Raises Unknown when the broker does not answer."""
    cluster = Cluster(settings.bootstrap)
    topics = [settings.text(name) for name in ("VISIT_WINDOWS_TOPIC", "VISITS_LATE_TOPIC", "VISITS_REJECTED_TOPIC")]
    return {topic: sum(each["end"] - each["stable"] for each in positions(cluster, topic)) for topic in topics}


def compare(settings: Settings, folder: Path) -> dict[str, int]:
    """Read the same range again and return the numbers. Raises Unknown when the broker does not answer."""
    seen: dict[tuple[int, int], str] = {}
    for line in (folder / "seen.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        seen[record["partition"], record["offset"]] = record["digest"]
    there = _read(settings, seen)
    return {
        "seen": len(seen),
        "different": sum(key in there and there[key] != value for key, value in seen.items()),
        "missing": sum(key not in there for key in seen),
        "unseen": sum(key not in seen for key in there),
    }


def _read(settings: Settings, seen: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
    """Digests of the records between the first and the last that were seen, in each partition."""
    offsets: dict[int, list[int]] = {}
    for partition, offset in seen:
        offsets.setdefault(partition, []).append(offset)
    spans = {partition: Span(min(found), max(found) + 1) for partition, found in offsets.items()}
    return {
        (record.partition, record.offset): record_digest(record.key, record.value).hex()
        for batch in Cluster(settings.bootstrap).read(settings.text("VISIT_WINDOWS_TOPIC"), spans)
        for record in batch.records()
    }


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    try:
        settings = Settings()
        print(json.dumps({"open": still_open(settings), **compare(settings, Path(arguments[0]))}))
    except (Unknown, SettingsError, OSError) as error:
        sys.stderr.write(f"aftermath: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
