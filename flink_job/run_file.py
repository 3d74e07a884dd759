"""The settings of a run, written beside its checkpoints: the verdict uses them, not the shell's."""

from __future__ import annotations

from tempfile import TemporaryFile

from contract.run import FLINK_RUN_FILE, as_json, flink_run_of
from contract.settings import Settings
from flink_job.rest import FlinkError

_PROBE_BYTES = 64 * 1024
"""More than the file has."""


def require_room(settings: Settings) -> None:
    """Raise FlinkError when the settings of a run could not be written: then its job must not start."""
    folder = settings.flink_checkpoints
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
    except OSError as error:
        raise FlinkError(
            f"{folder} cannot be written ({error.strerror}), and the job keeps its settings and its checkpoints there; "
            "make room or mend it, then try again"
        ) from None


def leave_settings(settings: Settings, mode: str, job_id: str) -> None:
    """Write `checkpoints/flink/<job id>/job.json`."""
    folder = settings.flink_checkpoints / job_id
    folder.mkdir(parents=True, exist_ok=True)
    run = flink_run_of(settings, job_id=job_id, mode=mode)
    # Replaced at once: a reader sees the old text or the new one.
    written = folder / f"{FLINK_RUN_FILE}.new"
    written.write_text(as_json(run), encoding="utf-8")
    written.replace(folder / FLINK_RUN_FILE)
