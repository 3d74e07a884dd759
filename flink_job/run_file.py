"""The settings of a run, noted on disk: the verdict uses them, not the shell's."""

from __future__ import annotations

from faultline.files import replace_text
from faultline.formats.run import FLINK_RUN_FILE, as_json, flink_run_of
from faultline.settings import Settings


def leave_settings(settings: Settings, mode: str, job_id: str) -> None:
    """Write `checkpoints/flink/<job id>/job.json`."""
    folder = settings.flink_notes / job_id
    folder.mkdir(parents=True, exist_ok=True)
    run = flink_run_of(settings, job_id=job_id, mode=mode)
    replace_text(folder / FLINK_RUN_FILE, as_json(run))
