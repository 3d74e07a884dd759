"""Stop inside a chosen batch, between `offsets/N` and `commits/N`: the moment that matters for fault tolerance.

This happens only with `--hold-batch`. With the foreach sinks the batch's lines are written already and its commit is
missing; with the file sink its first record is being written. A kill now is a kill inside the batch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_job.options import Options

_POLL_SECONDS = 0.05
# MicroBatchExecution.BATCH_ID_KEY of Spark: a local property of every task of a micro-batch.
_BATCH_ID_PROPERTY = "streaming.sql.batchId"


@dataclass(frozen=True)
class Hold:
    """`held` is written while batch `batch` waits, `release` ends the wait; both files are beside the notes."""

    batch: int
    held: Path
    release: Path

    @classmethod
    def of(cls, options: Options, next_batch: int) -> Hold | None:
        """Return the hold that the flag requests; files of an earlier run are removed."""
        held, release = Path(f"{options.notes}.held"), Path(f"{options.notes}.release")
        # Also in a run that holds nothing: a killed one must not look as if it still held its batch.
        held.unlink(missing_ok=True)
        release.unlink(missing_ok=True)
        if options.hold_batch is None:
            return None
        batch = int(options.hold_batch) if options.hold_batch.isdecimal() else next_batch
        return cls(batch, held, release)

    def wait(self, batch: int) -> None:
        """Wait for the release in the chosen batch; return at once in any other. Prints one message for all tasks."""
        if batch != self.batch or self.release.exists():
            return
        try:
            with self.held.open("x", encoding="utf-8") as file:
                file.write(f"{batch}\n")
            sys.stderr.write(f"synchronizer: batch {batch} held between offsets/{batch} and commits/{batch}\n")
            sys.stderr.flush()
        except FileExistsError:
            # Another task of the batch has already written it.
            pass
        parent = os.getppid()
        while not self.release.exists() and os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        self.held.unlink(missing_ok=True)

    def in_task(self) -> Callable[[bytes | None], bytes | None]:
        """Return a function for a Python UDF: each value passes unchanged, but only after the wait.

        The wait is in a task, at the first record, since a batch of the file sink runs Python nowhere else.
        Every record then crosses to Python and back, which costs throughput, so it is on request only.
        """

        def wait_then_pass(value: bytes | None) -> bytes | None:
            from pyspark import TaskContext  # noqa: PLC0415 - in the task's process

            context = TaskContext.get()
            batch = context.getLocalProperty(_BATCH_ID_PROPERTY) if context else None
            if batch is not None:
                self.wait(int(batch))
            # The worker passes values as bytearray.
            return None if value is None else bytes(value)

        return wait_then_pass
