"""Cancel the job without a savepoint and wait until it is CANCELED; its checkpoints are retained.

Usage: python -m flink_job.cancel [--job windows|classic] [--show PREFIX]

Prints the last completed checkpoint on stderr, and the job id on stdout. Exit codes: 0 it is
cancelled, 1 no job was active, 2 no JobManager or not cancelled in time.
"""

from __future__ import annotations

import argparse
import sys

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.jobs import JOBS, MAIN, settings_of
from faultline.settings import Settings
from faultline.waiting import wait_until
from flink_job.rest import active_job, call, checkpoints

LIMIT_SECONDS = 180


def cancel(base: str, job_id: str) -> None:
    """Cancel a job and wait until it is CANCELED. Raises FlinkError and TimedOut."""
    call(base, f"/jobs/{job_id}?mode=cancel", method="PATCH")
    wait_until(
        lambda: call(base, f"/jobs/{job_id}/status")["status"] == "CANCELED",
        f"the end of job {job_id}",
        seconds=LIMIT_SECONDS,
        explain=lambda: "see scripts/logs.sh jobmanager",
    )


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/flink_cancel.sh", description="Cancel a job.")
    parser.add_argument("--job", choices=JOBS, default=MAIN, help="which one (default: %(default)s)")
    parser.add_argument("--show", metavar="PREFIX", help="print Flink's own command, as typed behind this")
    arguments = parser.parse_args()
    settings = settings_of(arguments.job, Settings())
    base = settings.flink_rest
    job = active_job(base, settings.text("FLINK_JOB_NAME"))
    if job is None:
        print("cancel: no job is active; scripts/flink_submit.sh submits one", file=sys.stderr)
        return 1
    job_id = job["jid"]
    if arguments.show:
        print(f"   = {arguments.show} flink cancel {job_id}", file=sys.stderr)
    cancel(base, job_id)
    completed = checkpoints(base, job_id)["latest"]["completed"]
    last = f"chk-{completed['id']} was the last completed checkpoint" if completed else "it had completed no checkpoint"
    print(f"cancel: job {job_id} is cancelled; {last}", file=sys.stderr)
    print(job_id)
    return 0


if __name__ == "__main__":
    run("cancel", main)
