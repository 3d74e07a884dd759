"""The settings of a run, noted on disk: the verdict uses them, not the shell's."""

from __future__ import annotations

from faultline.formats.run import FLINK_RUN_FILE, as_json, flink_run_of
from faultline.settings import Settings


def leave_settings(settings: Settings, mode: str, job_id: str) -> None:
    """Write `checkpoints/flink/<job id>/job.json`."""
    folder = settings.flink_notes / job_id
    folder.mkdir(parents=True, exist_ok=True)
    run = flink_run_of(settings, job_id=job_id, mode=mode)
    # Replaced at once: a reader sees the old text or the new one.
    written = folder / f"{FLINK_RUN_FILE}.new"
    written.write_text(as_json(run), encoding="utf-8")
    written.replace(folder / FLINK_RUN_FILE)
