"""The settings of a run, noted on disk: the verdict judges a run by them, not by the shell's.

They are this stack's notes and not the engine's state, so they stay on disk when its data lies in an object store: an
object store has no locks (spark_job/checkpoint.py).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from faultline.command import CommandError
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.settings import Settings

SPARK_RUN_FILE = "synchronizer.json"
"""In the folder of notes of a query: its checkpoint folder when that is on a disk, see faultline/storage/data.py."""
FLINK_RUN_FILE = "job.json"
"""In `checkpoints/flink/<job id>`."""

SINKS = ("files", "foreach-append", "foreach-overwrite")
"""The synchronizer's sinks: exactly once; naive; idempotent."""


class RunError(CommandError):
    """A file of settings cannot be read; the message names it and the next step."""


@dataclass(frozen=True)
class SparkRun:
    """One query of the synchronizer. Paths in the stack's data are relative to it: faultline/storage/data.py."""

    topic: str
    sink: str
    output: str
    checkpoint: str


@dataclass(frozen=True)
class FlinkRun:
    """One run of the windowing job. Times in seconds; `partitions` is what the topics are created with.

    `partitions` is also the number of the job's event-time clocks: partitions p and p + `partitions` share one.
    `unaligned`: the job's checkpoints may hold records in flight.
    """

    job_id: str
    visits: str
    windows: str
    late: str
    rejected: str
    group_id: str
    window_seconds: int
    out_of_orderness_seconds: int
    idle_partition_seconds: int
    mode: str
    partitions: int
    unaligned: bool


_RunT = TypeVar("_RunT", SparkRun, FlinkRun)


def flink_runs(notes: Path, windows: str | None = None) -> list[tuple[Path, FlinkRun]]:
    """List the runs, or those that wrote to a topic of windows, the newest last.

    Raises RunError when one cannot be read.
    """
    written: dict[Path, float] = {}
    try:
        # Not glob(): it passes over a folder that cannot be read.
        for folder in notes.iterdir():
            file = folder / FLINK_RUN_FILE
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                written[file] = file.stat().st_mtime
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{error.filename or notes} cannot be read: {error.strerror}") from None
    files = sorted(written, key=lambda file: written[file])
    return [(file, run) for file in files if (run := read_run(FlinkRun, file)) and windows in (None, run.windows)]


def flink_run_of(settings: Settings, *, job_id: str = "", mode: str | None = None) -> FlinkRun:
    """Make the run that the settings describe."""
    return FlinkRun(
        job_id=job_id,
        visits=settings.text("VISITS_TOPIC"),
        windows=settings.text("VISIT_WINDOWS_TOPIC"),
        late=settings.text("VISITS_LATE_TOPIC"),
        rejected=settings.text("VISITS_REJECTED_TOPIC"),
        group_id=settings.text("FLINK_GROUP_ID"),
        window_seconds=settings.number("FLINK_WINDOW_SECONDS"),
        out_of_orderness_seconds=settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS"),
        idle_partition_seconds=settings.number("FLINK_IDLE_PARTITION_SECONDS"),
        mode=mode or settings.text("FLINK_MODE"),
        partitions=settings.number("TOPIC_PARTITIONS"),
        # Without exactly-once nothing is aligned, and no record is overtaken.
        unaligned=settings.flink_unaligned and (mode or settings.text("FLINK_MODE")) == EXACTLY_ONCE,
    )


def as_json(run: SparkRun | FlinkRun) -> str:
    """One line of JSON."""
    return json.dumps(asdict(run)) + "\n"


def read_run(kind: type[_RunT], file: Path) -> _RunT | None:
    """Read the settings of a run; None when there is no such file. Raises RunError when it cannot be read."""
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
        return kind(**{field.name: document[field.name] for field in fields(kind)})
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise RunError(
            f"{file} does not hold the settings of a run; it is damaged or of another version: start clean "
            "(scripts/down.sh --wipe)"
        ) from None
