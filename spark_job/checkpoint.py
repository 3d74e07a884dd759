"""A checkpoint location, and the run that owns it.

`offsets/N` is written before batch N runs and `commits/N` after it: a batch that has the first and not the
second was interrupted, and Spark runs it again, with the same offsets, before anything else.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from faultline.formats.run import SPARK_RUN_FILE, RunError, SparkRun, as_json, read_run
from faultline.settings import Settings
from faultline.storage.batches import SINK_LOG, newest_batch
from faultline.storage.data import noted
from faultline.storage.location import Location
from faultline.storage.writing import require_writable
from faultline.waiting import attempts
from spark_job.options import FILES, FOREACH_OVERWRITE, Options, UserError

BATCH_FOLDER = "batch_id="


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint location. `planned` and `committed` read it at each call."""

    path: Location

    def planned(self) -> int | None:
        """Newest batch whose offsets are written."""
        return newest_batch(self.path / "offsets")

    def committed(self) -> int | None:
        """Newest batch that is committed."""
        return newest_batch(self.path / "commits")

    def interrupted(self) -> int | None:
        """Return the batch that was planned and not committed, if there is one."""
        planned, committed = self.planned(), self.committed()
        return planned if planned is not None and planned != committed else None

    def initial_offsets(self, topic: str) -> dict[str, int]:
        """First offset of each partition in batch 0, as the Kafka source recorded it; empty when it has not yet.

        The file's first line is the version, `v1`; then JSON (`KafkaSourceInitialOffsetWriter` of Spark).
        """
        try:
            lines = (self.path / "sources" / "0" / "0").read_text(encoding="utf-8").splitlines()
            return dict(json.loads(lines[-1])[topic])
        except (OSError, ValueError, KeyError, IndexError):
            return {}


def claim(options: Options, settings: Settings, topic: str, wait_seconds: float = 15.0) -> IO[str]:
    """Claim the checkpoint and the output for this run; returns the open file of its settings, which holds the lock.

    The lock is on the open file: the JVM inherits it, so a new run waits until the JVM of a killed one is gone.
    Raises UserError: not writable, in use, or belonging to another sink, output, topic or folder.
    """
    _make_writable(options.checkpoint, "checkpoint")
    _make_writable(options.output, "output")
    _make_notes_writable(options)
    run_file = options.notes / SPARK_RUN_FILE
    # "a+": create it when missing, and never truncate it when another run holds the lock.
    with ExitStack() as unless_claimed:
        owner = unless_claimed.enter_context(run_file.open("a+", encoding="utf-8"))
        _lock(owner, options.checkpoint, wait_seconds)
        mine = SparkRun(
            topic=topic,
            sink=options.sink,
            output=noted(options.output, settings),
            checkpoint=noted(options.checkpoint, settings),
        )
        # Spark writes `metadata` when a query starts: without it, the checkpoint has not been used yet.
        if os.fstat(owner.fileno()).st_size and (options.checkpoint / "metadata").exists():
            _refuse_foreign(run_file, options.checkpoint, mine)
        else:
            owner.truncate(0)
            owner.write(as_json(mine))
            owner.flush()
        _refuse_newer_output(options)
        # Its time is that of the newest run (faultline/probes/batches.py).
        os.utime(owner.fileno())
        unless_claimed.pop_all()
    return owner


def _make_writable(folder: Location, name: str) -> None:
    try:
        require_writable(folder, 1)
    except OSError as error:
        raise UserError(f"{name} {folder} cannot be written: {error.strerror}; choose another --{name}") from None


def _make_notes_writable(options: Options) -> None:
    """For a checkpoint in an object store; on a disk its own folder has them."""
    try:
        options.notes.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{options.notes} cannot be made: {error.strerror}; the lock of checkpoint {options.checkpoint} is there; "
            "choose another STACK_HOME"
        ) from None


def _lock(owner: IO[str], checkpoint: Location, wait_seconds: float) -> None:
    for _ in attempts(wait_seconds, 0.1):
        try:
            return fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
    raise UserError(f"checkpoint {checkpoint} is in use by a running synchronizer; stop it with scripts/spark_stop.sh")


def _refuse_foreign(run_file: Path, checkpoint: Location, mine: SparkRun) -> None:
    try:
        theirs = read_run(SparkRun, run_file)
    except RunError as error:
        raise UserError(f"{error}; choose another --checkpoint") from None
    other = [each.name for each in fields(SparkRun) if getattr(theirs, each.name, None) != getattr(mine, each.name)]
    if other:
        different = ", ".join(f"{name} {getattr(theirs, name, None)} and not {getattr(mine, name)}" for name in other)
        raise UserError(f"checkpoint {checkpoint} belongs to {different}; choose another --checkpoint")


def _refuse_newer_output(options: Options) -> None:
    """Refuse an output with batches that this checkpoint never planned: they would count as already written.

    The file sink skips a batch id that is in its log; the overwriting sink would replace another run's batch.
    """
    if options.sink == FILES:
        written = newest_batch(options.output / SINK_LOG)
    elif options.sink == FOREACH_OVERWRITE:
        ids = (entry.name.removeprefix(BATCH_FOLDER) for entry in options.output.glob(f"{BATCH_FOLDER}*"))
        written = max((int(number) for number in ids if number.isdecimal()), default=None)
    else:
        return
    planned = Checkpoint(options.checkpoint).planned()
    if written is not None and (planned is None or written > planned):
        newest = "none" if planned is None else planned
        raise UserError(
            f"output {options.output} has batches up to {written}, checkpoint {options.checkpoint} up to {newest}: "
            "it was written with another checkpoint; remove it or choose another --output"
        )
