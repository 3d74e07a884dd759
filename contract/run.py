"""The settings of a run, stored beside its checkpoints: the verdict judges a run by them, not by the shell's."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from contract.settings import Settings

SPARK_RUN_FILE = "synchronizer.json"
"""In the checkpoint folder of a query."""
FLINK_RUN_FILE = "job.json"
"""In the folder of a job's checkpoints, `checkpoints/flink/<job id>`."""

SINKS = ("files", "foreach-append", "foreach-overwrite")
"""The synchronizer's sinks: exactly once; naive; idempotent."""


class RunError(Exception):
    """A file of settings cannot be read; the message names it and the next step."""


@dataclass(frozen=True)
class SparkRun:
    """One query of the synchronizer. Paths below the stack's home are relative to it."""

    topic: str
    sink: str
    output: str
    checkpoint: str


@dataclass(frozen=True)
class FlinkRun:
    """One run of the windowing job. Times in seconds; `partitions` is what the topics are created with.

    `partitions` is also the number of the job's event-time clocks: partitions p and p + `partitions` share one.
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


_RunT = TypeVar("_RunT", SparkRun, FlinkRun)


def relative_to_home(path: Path, home: Path) -> str:
    """A path relative to the stack's home if it is below it (a container has another home); other paths unchanged."""
    resolved = path.resolve()
    return str(resolved.relative_to(home)) if resolved.is_relative_to(home) else str(resolved)


def flink_runs(checkpoints: Path, windows: str) -> list[tuple[Path, FlinkRun]]:
    """List the runs that wrote to a topic of windows, the newest last. Raises RunError when one cannot be read."""
    try:
        files = sorted(checkpoints.glob(f"*/{FLINK_RUN_FILE}"), key=lambda file: file.stat().st_mtime)
    except OSError as error:
        raise RunError(f"{checkpoints} cannot be read: {error.strerror}") from None
    return [(file, run) for file in files if (run := read_run(FlinkRun, file)) and run.windows == windows]


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
