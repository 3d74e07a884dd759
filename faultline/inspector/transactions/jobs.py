"""The job of this project that owns a transaction, and whether that job runs."""

from __future__ import annotations

from faultline.formats.jobs import JOBS, settings_of
from faultline.settings import Settings
from flink_job.rest import FlinkError, active_job, is_absent


def job_of(transactional_id: str, topic: str, settings: Settings) -> str:
    """Name the job whose sinks write to the topic under such ids; empty for another program."""
    for job in JOBS:
        prefix = settings_of(job, settings).text("FLINK_TRANSACTIONAL_ID_PREFIX")
        if transactional_id.startswith(f"{prefix}-{topic}-"):
            return job
    return ""


def job_runs(job: str, settings: Settings) -> bool | None:
    """Return whether Flink runs the job or will restart it; False without a JobManager, None without an answer."""
    try:
        return active_job(settings.flink_rest, settings_of(job, settings).text("FLINK_JOB_NAME")) is not None
    except FlinkError as error:
        # Several JobManagers are asked in turn, and the error is that of the last one alone.
        return False if "," not in settings.flink_rest and is_absent(error) else None
