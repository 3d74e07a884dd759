"""State of the synchronizer's planned batches: what each has written, and when it was committed.

Usage: python -m faultline.probes.planned BATCH...                 these batches, as they are now
       python -m faultline.probes.planned --wait-written SECONDS   wait until one that is not committed has a file

Prints one line of JSON. Of batches, by their numbers: the range as in faultline/probes/batches.py, null when the file
in offsets/ is gone; `lines`, how many it has written by the sink's log, null when the sink has none; `committed_at`, in
seconds since the epoch, null when it is not committed. Of a wait: `batch`, the number of the one that was found. Exit
codes: 0 done, 1 not within SECONDS, 2 it cannot be read.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Sequence
from typing import Any

from faultline.command import CommandError, Flags, run
from faultline.probes.batches import batch_range
from faultline.settings import Settings
from faultline.storage.batches import SINK_LOG, newest_batch
from faultline.storage.data import spark_checkpoints, spark_outputs
from faultline.storage.location import Location
from faultline.verdict.spark.sink_log import logged_in
from faultline.waiting import attempts

_POLL_SECONDS = 0.1


class NoneWritten(CommandError):
    """No batch was being written in time."""

    code = 1


def as_it_is(checkpoint: Location, output: Location, batch: int) -> dict[str, Any]:
    """The range of a batch, the lines that it has written, and its commit. Raises OSError and ValueError."""
    commit = checkpoint / "commits" / str(batch)
    return {
        "range": batch_range(checkpoint, batch) if (checkpoint / "offsets" / str(batch)).exists() else None,
        "lines": lines_of(output, batch) if (output / SINK_LOG).is_dir() else None,
        "committed_at": commit.stat().st_mtime if commit.exists() else None,
    }


def being_written(checkpoint: Location, output: Location) -> int | None:
    """The newest batch, if it is not committed and has written a file since it was planned. Raises OSError."""
    newest = newest_batch(checkpoint / "offsets")
    if newest is None or (checkpoint / "commits" / str(newest)).exists():
        return None
    planned = (checkpoint / "offsets" / str(newest)).stat().st_mtime
    later = {file.name for file in output.rglob("part-*") if _is_later(file.stat().st_mtime, planned)}
    # Within a second of an object store they may be files of the batch before.
    return newest if later and not later <= _files_of(output / SINK_LOG, newest - 1) else None


def _files_of(log: Location, batch: int) -> set[str]:
    """Names of the files that the sink's log has for a batch; after a compaction also those of earlier batches."""
    return {name for file in (str(batch), f"{batch}.compact") for name in _logged(log / file) or ()}


def _is_later(time_of_file: float, planned: float) -> bool:
    """Return whether a file was written after the plan; an object store keeps whole seconds, and both may be in one."""
    return time_of_file > planned or (time_of_file == planned and planned.is_integer())


def lines_of(output: Location, batch: int) -> int:
    """Count the lines in the files of a batch; a compacted log also names those of earlier batches."""
    log = output / SINK_LOG
    own = _logged(log / str(batch))
    if own is None:
        before = [
            _logged(file) or []
            for file in log.iterdir()
            if (number := file.name.removesuffix(".compact")).isdigit() and int(number) < batch
        ]
        own = [name for name in _logged(log / f"{batch}.compact") or [] if not any(name in each for each in before)]
    return sum((output / name).read_bytes().count(b"\n") for name in own)


def _logged(file: Location) -> list[str] | None:
    """Names of the files in a file of the log. None when it does not exist. Raises OSError and Unknown."""
    return [posixpath.basename(each.path) for each in logged_in(file)] if file.exists() else None


def wait_written(checkpoint: Location, output: Location, seconds: float) -> int:
    """Wait until a batch is being written, and return its number. Raises NoneWritten, and OSError."""
    for _ in attempts(seconds, _POLL_SECONDS):
        try:
            if (batch := being_written(checkpoint, output)) is not None:
                return batch
        except FileNotFoundError:
            # Spark has removed an old batch, or a file that it did not commit.
            continue
    raise NoneWritten(f"no batch was being written within {seconds:g} s; is there a load?")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = Flags("planned", prog="planned", description="Planned batches.")
    parser.add_argument("batches", nargs="*", type=int, metavar="BATCH")
    parser.add_argument("--wait-written", type=float, metavar="SECONDS")
    chosen = parser.parse_args(arguments)
    settings = Settings()
    query = settings.query()
    checkpoint, output = spark_checkpoints(settings) / query, spark_outputs(settings) / query
    try:
        if chosen.wait_written is not None:
            print(json.dumps({"batch": wait_written(checkpoint, output, chosen.wait_written)}))
        if chosen.batches:
            print(json.dumps({batch: as_it_is(checkpoint, output, batch) for batch in chosen.batches}))
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    return 0


if __name__ == "__main__":
    run("planned", main)
