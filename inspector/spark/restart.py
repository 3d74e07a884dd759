"""What Spark does when a query is started again on a checkpoint.

MicroBatchExecution.populateStartOffsets (Spark 3.5 and 4.0): the newest offsets file is taken, and the one before,
which must be there even when it is not needed. When the newest batch is committed, the query goes on with the next
one; otherwise exactly this batch is re-run. Older batches are not looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.model import Partition, Restart, SourceRange
from inspector.spark.offsets import PlannedBatch
from inspector.spark.sources import explain, kafka_partitions, kind_of
from inspector.words import positions, ranges


def predict(
    checkpoint: Path,
    batches: dict[int, PlannedBatch],
    errors: dict[int, str],
    committed: set[int],
    initial: list[Any],
) -> Restart:
    """Predict the restart from what the logs hold; `errors` are offsets files that cannot be read."""
    if not batches and not errors:
        return _begin(checkpoint, committed)
    last = max([*batches, *errors])
    if last in errors:
        file = checkpoint / "offsets" / str(last)
        return Restart("impossible", last, f"A restart fails: Spark reads {file} first, and {errors[last]}")
    if last > 0 and last - 1 not in batches:
        why = errors.get(last - 1, "it is missing")
        file = checkpoint / "offsets" / str(last - 1)
        return Restart(
            "impossible", last, f"A restart fails: Spark also reads {file}, where batch {last} starts, and {why}"
        )
    if last not in committed:
        return _rerun(checkpoint, last, batches, initial)
    if last + 1 in committed:
        return _taken(checkpoint, last + 1, last + 1, f"since offsets/{last} is the newest")
    return _continue(last, batches[last])


def _begin(checkpoint: Path, committed: set[int]) -> Restart:
    if committed:
        return _taken(checkpoint, 0, min(committed), "from the sources' start, since no batch is planned")
    return Restart("continue", 0, "A restart begins with batch 0: nothing was planned yet")


def _taken(checkpoint: Path, begin: int, taken: int, why: str) -> Restart:
    # MicroBatchExecution takes a commit file that is there already for a second query on this checkpoint.
    return Restart(
        "impossible",
        begin,
        f"A restart plans batch {begin} anew, {why}, and fails when batch {taken} is to be committed:"
        f" {checkpoint}/commits/{taken} is there already",
    )


def _continue(last: int, batch: PlannedBatch) -> Restart:
    partitions = [
        Partition(each.topic, each.partition, each.end, None)
        for end in batch.ends
        if kind_of(end) == "kafka"
        for each in kafka_partitions(None, end)
    ]
    others = [_after(number, end) for number, end in enumerate(batch.ends) if kind_of(end) != "kafka"]
    where = "; ".join([*([positions(partitions)] if partitions else []), *others])
    return Restart("continue", last + 1, f"A restart goes on with batch {last + 1}: {where}", partitions)


def _after(source: int, end: Any) -> str:
    kind = kind_of(end)
    if kind == "file":
        return f"files that are not in the source's log yet (after log offset {end['logOffset']})"
    if kind == "delta":
        return f"the Delta table from version {end['reservoirVersion']}"
    return f"source {source} after {end}" if end is not None else f"source {source} from its start"


def _rerun(checkpoint: Path, last: int, batches: dict[int, PlannedBatch], initial: list[Any]) -> Restart:
    starts = batches[last - 1].ends if last > 0 else [None] * len(batches[last].ends)
    sources: list[SourceRange] = []
    for number, end in enumerate(batches[last].ends):
        start = starts[number] if number < len(starts) else None
        sources.append(explain(checkpoint, number, start, end, initial[number] if number < len(initial) else None))
    partitions = [each for source in sources for each in source.partitions]
    others = [source.words for source in sources if source.kind not in ("kafka", "none")]
    what = "; ".join([*([ranges(partitions)] if partitions else []), *others])
    return Restart("re-run", last, f"A restart re-runs batch {last}: {what}", partitions)
