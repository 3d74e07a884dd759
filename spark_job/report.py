"""Prints one line on stderr for each committed batch."""

from __future__ import annotations

import json
import sys
import threading

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_job.checkpoint import Checkpoint


def batch_line(
    batch: int, topic: str, start: dict[str, int], end: dict[str, int], *, rows: int, seconds: float, note: str
) -> str:
    """Return e.g. `batch 7 (re-run): visits-0 [100, 150), visits-1 [90, 140), 100 rows, 0.41 s`; ends exclusive."""
    ranges = [
        f"{topic}-{partition} [{start.get(partition, 0)}, {offset})"
        for partition, offset in sorted(end.items(), key=lambda item: int(item[0]))
    ]
    return f"batch {batch}{f' ({note})' if note else ''}: {', '.join(ranges)}, {rows} rows, {seconds:.2f} s"


class Report(StreamingQueryListener):
    """Prints each batch once; `rerun` is the id of the batch that an earlier run left without a commit."""

    def __init__(self, checkpoint: Checkpoint, topic: str, rerun: int | None, *, rerun_in_output: bool) -> None:
        self._checkpoint = checkpoint
        self._topic = topic
        self._rerun = rerun
        self._rerun_in_output = rerun_in_output
        self._last: int | None = None
        # Set while no query runs, so that there is no wait for a query that could not start.
        self.terminated = threading.Event()
        self.terminated.set()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: ARG002
        """Wait for this query's end; Spark calls this before `start()` returns."""
        self.terminated.clear()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """No new records: no batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002
        """Events arrive in order: after this one, all batches are printed."""
        self.terminated.set()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Print the batch. A repeated report of the same batch without work prints no line."""
        progress = event.progress
        if progress.batchId == self._last or "addBatch" not in progress.durationMs:
            return
        self._last = progress.batchId
        source = progress.sources[0]
        end = self._offsets(source.endOffset)
        start = self._offsets(source.startOffset) or self._checkpoint.initial_offsets(self._topic)
        note = ""
        if progress.batchId == self._rerun:
            note = (
                "re-run; its files are already in the output's log: nothing written"
                if self._rerun_in_output
                else "re-run"
            )
        seconds = progress.durationMs["triggerExecution"] / 1000
        text = batch_line(
            progress.batchId, self._topic, start, end, rows=progress.numInputRows, seconds=seconds, note=note
        )
        sys.stderr.write(f"synchronizer: {text}\n")
        sys.stderr.flush()

    def _offsets(self, text: str | None) -> dict[str, int]:
        # Before the first batch there is no start offset; pyspark returns a Java null as text.
        return dict(json.loads(text)[self._topic]) if text and text not in {"None", "null"} else {}
