"""Count the visits with and without a field: on the topic, and in the synchronizer's output.

Usage: python -m measure.fields FIELD

Prints one line of JSON: `topic` and `output`, each with the numbers `with` and `without`. Records that are not one JSON
object count as without. Files of an interrupted batch, which Spark's readers skip, are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence

from contract.settings import Settings, SettingsError
from verdict.checker import Moved, Options
from verdict.cluster import Cluster
from verdict.model import Unknown
from verdict.spark.checkpoint import newest_commit
from verdict.spark.output import list_output
from verdict.spark.places import Places, places


def has_field(value: bytes | None, field: str) -> bool:
    """Whether a record or a line is one JSON object with this field at its top."""
    try:
        document = json.loads(value or b"")
    except ValueError:
        return False
    return isinstance(document, dict) and field in document


def count(values: Iterable[bytes | None], field: str) -> dict[str, int]:
    """Count the values with and without the field."""
    found = {"with": 0, "without": 0}
    for value in values:
        found["with" if has_field(value, field) else "without"] += 1
    return found


def on_topic(cluster: Cluster, topic: str) -> Iterator[bytes | None]:
    """Yield the values of a topic's committed records. Raises Unknown."""
    for batch in cluster.read(topic, cluster.spans(topic, committed=True)):
        yield from batch.values


def in_output(where: Places) -> Iterator[bytes]:
    """Yield the lines of the output, without those of leftovers. Raises Unknown, Moved and OSError."""
    commit = newest_commit(where.checkpoint, where.topic)
    for file in list_output(where.output, where.sink, None if commit is None else commit.batch).files:
        if not file.leftover:
            with file.path.open("rb") as lines:
                yield from lines


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    (field,) = arguments
    try:
        settings = Settings()
        where = places(settings, Options())
        found = {
            "topic": count(on_topic(Cluster(settings.bootstrap), where.topic), field),
            "output": count(in_output(where), field),
        }
        print(json.dumps(found))
    except (Unknown, Moved, SettingsError, OSError) as error:
        sys.stderr.write(f"fields: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
