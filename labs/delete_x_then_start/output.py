"""Cases: the output is gone, the checkpoint is not."""

from __future__ import annotations

from labs.delete_x_then_start.case import ROWS, Bench, Case, Group
from labs.delete_x_then_start.damage import delete_output
from labs.frame.pipeline import APPEND, FILE_SINK, RunResult


def _in_small_batches(bench: Bench) -> RunResult:
    return bench.pipeline.run(limit=ROWS)


GROUP = Group(
    "The output",
    "The folder that the query writes to is deleted, with the file sink's log `_spark_metadata` in it.",
    [
        Case(
            "output",
            "the output folder, the checkpoint kept",
            "The checkpoint is right and the rows are gone: read the source again with a new checkpoint into a new "
            "output, while the source still has them.",
            delete_output,
            sinks=(APPEND, FILE_SINK),
        ),
        Case(
            "output-compaction",
            "the same, then six batches more",
            "Do not let it run on: the file sink folds its log at batch 9 and then misses what was deleted. "
            "New checkpoint, new output.",
            delete_output,
            sinks=(FILE_SINK,),
            arriving=6 * ROWS,
            start=_in_small_batches,
        ),
    ],
)
