"""State of the Flink job, from the JobManager.

Usage: python -m flink_job.status [--job windows|classic] [--wait-checkpoints N] [--wait-begun] [--wait-seconds S]

Prints one line of JSON, with the fields of `faultline.formats.status.FlinkJob`.
`--wait-checkpoints N` waits until the job has completed N checkpoints since it was submitted, `--wait-begun` until one
is in progress. Exit codes: 0 done, 1 not within S seconds or no job, 2 no JobManager.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.jobs import JOBS, MAIN, settings_of
from faultline.formats.status import FlinkJob, JobSample
from faultline.settings import Settings
from faultline.waiting import attempts
from flink_job.rest import call, checkpoints, failures, jobs_named

RECENT_SECONDS = 120
"""Age of the oldest failures that are counted, in seconds."""


def job_status(base: str, name: str) -> JobSample | None:
    """Return the state of the newest job of that name, or None. Raises FlinkError."""
    job = newest_job(base, name)
    return None if job is None else status_of(base, job, checkpoints(base, job["jid"]))


def with_failures(base: str, job: JobSample) -> FlinkJob:
    """Add the interval of its checkpoints and its failures to the state of a job. Raises FlinkError."""
    recent = [each for each in failures(base, job.job_id) if each[0] >= (time.time() - RECENT_SECONDS) * 1000]
    return FlinkJob(
        **vars(job),
        checkpoint_interval_ms=call(base, f"/jobs/{job.job_id}/checkpoints/config")["interval"],
        recent_failures=len(recent),
        newest_failure=recent[0][1] if recent else None,
    )


def newest_job(base: str, name: str) -> dict[str, Any] | None:
    """The newest job of that name, as `jobs_named` lists it, or None. Raises FlinkError."""
    return next(iter(jobs_named(base, name)), None)


def status_of(base: str, job: dict[str, Any], statistics: dict[str, Any]) -> JobSample:
    """Return the state of a job, from its checkpoint statistics. Raises FlinkError."""
    completed = statistics["latest"]["completed"] or {}
    restored = statistics["latest"]["restored"] or {}
    metrics = call(base, f"/jobs/{job['jid']}/metrics?get=numRestarts")
    return JobSample(
        job_id=job["jid"],
        state=job["state"],
        running_tasks=job["tasks"]["running"],
        tasks=job["tasks"]["total"],
        checkpoints_completed=statistics["counts"]["completed"],
        checkpoints_failed=statistics["counts"]["failed"],
        checkpoints_in_progress=statistics["counts"]["in_progress"],
        latest_checkpoint=completed.get("id"),
        latest_path=completed.get("external_path"),
        latest_at=completed.get("latest_ack_timestamp"),
        restored_from=restored.get("external_path"),
        restarts=int(metrics[0]["value"]) if metrics else 0,
        submitted_at=job["start-time"],
    )


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/flink_status.sh", description="State of the Flink job.")
    parser.add_argument("--wait-checkpoints", type=int, default=0, metavar="N")
    parser.add_argument("--wait-begun", action="store_true", help="wait until a checkpoint is in progress")
    parser.add_argument("--wait-seconds", type=float, default=60, metavar="S")
    parser.add_argument("--job", choices=JOBS, default=MAIN, help="which one (default: %(default)s)")
    arguments = parser.parse_args()
    settings = settings_of(arguments.job, Settings())
    waits = arguments.wait_checkpoints or arguments.wait_begun
    for _ in attempts(arguments.wait_seconds if waits else 0):
        status = job_status(settings.flink_rest, settings.text("FLINK_JOB_NAME"))
        reached = (
            status is not None
            and status.checkpoints_completed >= arguments.wait_checkpoints
            and status.checkpoints_in_progress >= arguments.wait_begun
        )
        if reached:
            break
    if status is None:
        print("flink: no job was submitted yet; submit it with scripts/flink_submit.sh", file=sys.stderr)
        return 1
    # Asked once, and not at each look of a wait.
    print(json.dumps(asdict(with_failures(settings.flink_rest, status))))
    if not reached:
        print(
            f"flink: {status.checkpoints_completed} checkpoints completed within {arguments.wait_seconds:.0f} s, "
            f"expected {'one in progress' if arguments.wait_begun else arguments.wait_checkpoints}; "
            f"the job is {status.state}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    run("flink", main)
