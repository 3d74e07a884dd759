"""The windowing job without a guarantee: no checkpoints, and sinks that promise nothing. A baseline for benchmarks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from contract.settings import Settings
from flink_job import java_classes
from flink_job.guarantees import NONE
from flink_job.run_file import leave_settings
from flink_job.stateful_flink_consumer import describe


def main() -> None:
    """Build the job and submit it."""
    settings = Settings()
    with tempfile.TemporaryDirectory(prefix="flink-job-classes-") as folder:
        jar = java_classes.compile_into(Path(folder))
        submitted = describe(settings, NONE, jar).execute(settings.text("FLINK_JOB_NAME"))
    leave_settings(settings, NONE, str(submitted.get_job_id()))


if __name__ == "__main__":
    main()
