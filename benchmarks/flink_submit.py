"""Submit a job of benchmarks/jobs/, or one of the project's, and wait until it runs.

Usage: python -m benchmarks.flink_submit PROGRAM [ARGUMENT...]      in the Flink environment

PROGRAM is a path below the project's root. Prints the job id; exit code 2 when it does not run.
"""

from __future__ import annotations

import sys

from faultline.command import run
from faultline.formats.jobs import MAIN
from faultline.settings import ROOT, Settings
from flink_job.submit import submit, wait_until_running


def main() -> int:
    """Run the command line; returns the exit code."""
    program, *arguments = sys.argv[1:]
    settings = Settings()
    job_id = submit(settings, MAIN, ROOT / program, arguments)
    wait_until_running(settings, job_id)
    print(job_id)
    return 0


if __name__ == "__main__":
    run("submit", main)
