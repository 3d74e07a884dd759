"""Refuse a restore with another number of tasks when the checkpoint holds records that barriers overtook.

The job decides which visit is late by the order of a Kafka partition. Flink hands such records to the tasks again, each
to the task of its partition, but with another number of tasks not in their order: it calls that "not guaranteed to work
correctly" and lets a job with a partitioner of its own run only if it is forced (StreamingJobGraphGenerator,
`execution.checkpointing.unaligned.forced`).
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.metadata import Entry, in_flight_bytes
from faultline.inspector.words import count, size_words


def refusal(entries: Sequence[Entry], parallelism: int) -> str | None:
    """Say why a job with so many tasks of a step must not restore these operators; None when it may."""
    rescaled = [entry for entry in entries if entry.parallelism != parallelism]
    moved = [(entry, size) for entry in rescaled if (size := in_flight_bytes(entry))]
    if not moved:
        return None
    tasks = min(entry.parallelism for entry, _ in moved)
    return (
        f"it holds {size_words(sum(size for _, size in moved))} of records that barriers overtook (unaligned), for"
        f" {count(tasks, 'task')} of {', '.join(entry.label for entry, _ in moved)};"
        f" the job has {parallelism}, and would get them in another order. Restore it with"
        f" STACK_FLINK_PARALLELISM={tasks}, or restore a savepoint, which never holds such records"
    )


def check_parallelism(entries: Sequence[Entry], parallelism: int) -> None:
    """Raise an InspectorError when a job with so many tasks of a step must not restore these operators."""
    if reason := refusal(entries, parallelism):
        raise InspectorError(f"the checkpoint cannot be restored with this parallelism: {reason}")
