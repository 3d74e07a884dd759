"""Count the visits with and without a field: on the topic, in the synchronizer's output, and in the job's windows.

Usage: python -m faultline.probes.fields FIELD

Prints one line of JSON: `topic`, `output` and `windows`, each with the numbers `with` and `without`. A record that is
not one JSON object counts as without, and so does a window of a visit_id that never had the field. Files of an
interrupted batch, which Spark's readers skip, are left out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from faultline.command import run
from faultline.settings import Settings
from faultline.verdict.checker import Options
from faultline.verdict.cluster import Cluster
from faultline.verdict.spark.checkpoint import newest_commit
from faultline.verdict.spark.locations import Locations, locations
from faultline.verdict.spark.output import list_output


def document_of(value: bytes | None) -> dict[str, object]:
    """The one JSON object in a record or a line; empty when it is something else."""
    try:
        document = json.loads(value or b"")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def count(answers: Iterable[bool]) -> dict[str, int]:
    """Count how often it is there, and how often not."""
    found = Counter(answers)
    return {"with": found[True], "without": found[False]}


def on_topic(cluster: Cluster, topic: str) -> Iterator[dict[str, object]]:
    """Yield the committed records of a topic. Raises Unknown."""
    for batch in cluster.read(topic, cluster.spans(topic, committed=True)):
        yield from map(document_of, batch.values)


def in_output(where: Locations) -> Iterator[bytes]:
    """Yield the lines of the output, without those of leftovers. Raises Unknown, Moved and OSError."""
    commit = newest_commit(where.checkpoint, where.topic)
    for file in list_output(where.output, where.sink, None if commit is None else commit.batch).files:
        if not file.leftover:
            with file.path.open("rb") as lines:
                yield from lines


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    (field,) = arguments
    settings = Settings()
    where, cluster = locations(settings, Options()), Cluster(settings.bootstrap)
    # In this order: each line and each window that is counted is of a visit that was on the topic before.
    windows = [window["visit_id"] for window in on_topic(cluster, settings.text("VISIT_WINDOWS_TOPIC"))]
    output = count(field in document_of(line) for line in in_output(where))
    visits = [(visit.get("visit_id"), field in visit) for visit in on_topic(cluster, where.topic)]
    having = {visit_id for visit_id, has in visits if has}
    found = {
        "topic": count(has for _, has in visits),
        "output": output,
        "windows": count(visit_id in having for visit_id in windows),
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    run("fields", lambda: main(sys.argv[1:]))
