"""The beginning and the end of a program that defines a Flink job: its options, its execution, its settings on disk."""

from __future__ import annotations

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from faultline.settings import Settings
from flink_job.guarantees import job_configuration
from flink_job.run_file import leave_settings


def new_environment(settings: Settings, mode: str) -> StreamExecutionEnvironment:
    """Create an environment with the job's options."""
    configuration = Configuration()
    for name, value in job_configuration(settings, mode).items():
        configuration.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def execute(environment: StreamExecutionEnvironment, settings: Settings, mode: str) -> None:
    """Submit the job, and leave its settings beside its checkpoints."""
    submitted = environment.execute(settings.text("FLINK_JOB_NAME"))
    leave_settings(settings, mode, str(submitted.get_job_id()))
