"""Submit a job with Flink's own client, and wait until it runs.

Usage: python -m flink_job.submit [--job windows|classic] [--from CHECKPOINT] [--mode exactly-once|at-least-once]

Prints the job id on stdout, messages on stderr. Refused while a job of that name is active: two jobs
would share one set of transactional ids and fence each other off. Exit codes: 0 it runs, 2 it does not.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from contract.jobs import CLASSIC, JOBS, MAIN, settings_of
from contract.settings import ROOT, Settings, SettingsError
from flink_job.guarantees import MODES
from flink_job.home import HomeError, prepare
from flink_job.rest import FlinkError, active_job, call

PACKAGES = ("contract", "flink_job")
"""Files that the job's program imports; `.env` too, since contract.settings reads it."""
FOLDER = Path(__file__).parent
PROGRAMS = {MAIN: FOLDER / "stateful_flink_consumer.py", CLASSIC: FOLDER / "classic.py"}
SUBMITTED = re.compile(r"JobID ([0-9a-f]{32})")
RUNNING_LIMIT_SECONDS = 60
POLL_SECONDS = 0.2


def client_command(
    flink_home: str, python: str, program: Path, checkpoint: str | None, arguments: Sequence[str]
) -> list[str]:
    """The `flink run` command line; the packages that the program imports are in the folder above it."""
    command = [f"{flink_home}/bin/flink", "run", "--detached"]
    if checkpoint:
        # State that the job no longer has must fail the restore, not be dropped silently.
        command += ["--fromSavepoint", checkpoint, "-restoreMode", "NO_CLAIM"]
    command += ["--python", str(program), "--pyFiles", str(program.parent.parent)]
    command += ["--pyClientExecutable", python, "--pyExecutable", python]
    return [*command, *arguments]


def submit(settings: Settings, program: Path, arguments: Sequence[str], checkpoint: str | None = None) -> str:
    """Submit a program with its arguments and return the job id. Raises FlinkError when refused, and HomeError."""
    name = settings.text("FLINK_JOB_NAME")
    active = active_job(settings.flink_rest, name)
    if active is not None:
        raise FlinkError(
            f"job {name} is {active['state']} already as {active['jid']}: a second job would share its "
            "transactional ids; cancel it first (scripts/flink_cancel.sh)"
        )
    if not call(settings.flink_rest, "/taskmanagers")["taskmanagers"]:
        print("submit: no TaskManager is registered yet; the job starts as soon as one is", file=sys.stderr)
    environment = os.environ | prepare(settings, "client")
    with tempfile.TemporaryDirectory(prefix="flink-job-") as folder:
        # The client copies every folder of -pyfs: so it gets these packages, not the project.
        packages = Path(folder)
        for path in {*(ROOT / name for name in (*PACKAGES, ".env")), program.parent}:
            (packages / path.name).symlink_to(path)
        linked = packages / program.parent.name / program.name
        done = subprocess.run(
            client_command(environment["FLINK_HOME"], sys.executable, linked, checkpoint, arguments),
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    submitted = SUBMITTED.search(done.stdout)
    if done.returncode != 0 or submitted is None:
        # The client's own stack trace does not help; the program's last lines do.
        words = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(("\tat ", "\t..."))]
        tail = "\n".join(words[-15:])
        raise FlinkError(f"the client could not submit the job; its last lines:\n{tail}")
    return submitted.group(1)


def wait_until_running(settings: Settings, job_id: str) -> None:
    """Wait until every task runs. Raises FlinkError when the job ends instead, or not within the limit."""
    deadline = time.monotonic() + RUNNING_LIMIT_SECONDS
    while time.monotonic() < deadline:
        job = call(settings.flink_rest, f"/jobs/{job_id}")
        states = [vertex["status"] for vertex in job["vertices"]]
        if job["state"] == "RUNNING" and all(state == "RUNNING" for state in states):
            return
        if job["state"] in ("FAILED", "CANCELED"):
            cause = call(settings.flink_rest, f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
            reason = cause[0]["stacktrace"].splitlines()[0] if cause else "no cause given"
            raise FlinkError(f"job {job_id} is {job['state']}: {reason}; see scripts/logs.sh jobmanager")
        time.sleep(POLL_SECONDS)
    raise FlinkError(
        f"job {job_id} was submitted but did not run within {RUNNING_LIMIT_SECONDS} s; "
        "is a TaskManager running? see scripts/status.sh"
    )


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="flink_job.submit", description="Submit a job.")
    parser.add_argument("--job", choices=JOBS, default=MAIN, help="which one (default: %(default)s)")
    parser.add_argument("--from", dest="checkpoint", metavar="CHECKPOINT", help="folder of a complete checkpoint")
    parser.add_argument("--mode", choices=MODES, help="default: FLINK_MODE in .env")
    arguments = parser.parse_args()
    try:
        settings = settings_of(arguments.job, Settings())
        mode = arguments.mode or settings.text("FLINK_MODE")
        job_id = submit(settings, PROGRAMS[arguments.job], ["--mode", mode], arguments.checkpoint)
        print(job_id, flush=True)
        wait_until_running(settings, job_id)
    except (FlinkError, HomeError, SettingsError) as error:
        print(f"submit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("submit: interrupted; scripts/flink_status.sh shows whether the job was submitted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
