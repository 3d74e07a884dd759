"""The Flink jobs of this project by name, and the settings of each: its own outputs, ids and checkpoints.

Both read the topic `visits`, so both can run at once.
"""

from __future__ import annotations

from faultline.settings import ROOT, Settings

MAIN, CLASSIC = "windows", "classic"
JOBS = (MAIN, CLASSIC)
"""`windows`: this project's windowing job. `classic`: the same job as tutorials write it, to see what that loses."""
PROGRAMS = {
    MAIN: ROOT / "flink_job" / "stateful_flink_consumer.py",
    CLASSIC: ROOT / "flink_job" / "classic.py",
}
"""The program that defines each job; `flink run --python` gets it."""

EXACTLY_ONCE, AT_LEAST_ONCE = MODES = ("exactly-once", "at-least-once")
"""Guarantees that a job can promise for its checkpoints and for its outputs."""


def settings_of(job: str, settings: Settings) -> Settings:
    """The settings by which a job runs and is judged; `classic` has its own instead of the windowing job's."""
    if job == MAIN:
        return settings
    name = settings.text("CLASSIC_JOB_NAME")
    return settings.changed(
        {
            "FLINK_JOB_NAME": name,
            "FLINK_GROUP_ID": name,
            "FLINK_TRANSACTIONAL_ID_PREFIX": name,
            # Deeper than the inspector looks for checkpoints of the windowing job, of which a restore takes the newest.
            "FLINK_CHECKPOINTS": f"{settings.text('FLINK_CHECKPOINTS')}/other-jobs/{name}",
            "VISIT_WINDOWS_TOPIC": settings.text("CLASSIC_WINDOWS_TOPIC"),
            "VISITS_LATE_TOPIC": settings.text("CLASSIC_LATE_TOPIC"),
        }
    )
