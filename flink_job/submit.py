"""Submit a job with Flink's own client, and wait until it runs.

Usage: python -m flink_job.submit [--job windows|classic] [--from CHECKPOINT] [--mode exactly-once|at-least-once]
       [--say TEXT]... [--show PREFIX] [--program FILE.py [-- ARGUMENT...]]

Prints the job id on stdout, messages on stderr. Refused while a job of that name is active: two jobs
would share one set of transactional ids and fence each other off. Exit codes: 0 it runs, 2 it does not.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.jobs import JOBS, MAIN, MODES, PROGRAMS, settings_of
from faultline.settings import Settings
from faultline.storage.words import is_uri
from faultline.waiting import wait_until
from flink_job.cancel import cancel
from flink_job.configuration import CLIENT, prepare
from flink_job.rest import FlinkError, active_job, call, failures
from flink_job.start import client
from flink_job.writable import require_writable_checkpoints

SUBMITTED = re.compile(r"JobID ([0-9a-f]{32})")
RUNNING_LIMIT_SECONDS = 180
SUBMISSIONS = 3
"""Number of runs of the client where JobManagers elect a leader, which may change between two requests."""
LEADER_GONE = ("RecipientUnreachableException", "FencingTokenException", "LeaderRetrievalException")
"""Flink's errors of a request to a JobManager that has lost the lead meanwhile."""
SAME_FAILURES = 3
"""A job that fails so often for the same reason before it ever runs will not run: it is restarted without end."""


def client_command(program: Path, checkpoint: str | None, arguments: Sequence[str]) -> list[str]:
    """The `flink run` command line. flink_job/configuration.py names the interpreter and the packages."""
    command = ["flink", "run", "--detached"]
    if checkpoint:
        uri = checkpoint if is_uri(checkpoint) else Path(checkpoint).as_uri()
        # State that the job no longer has must fail the restore, not be dropped silently.
        command += ["--fromSavepoint", uri, "--claimMode", "NO_CLAIM"]
    return [*command, "--python", str(program), *arguments]


def submit(
    stack: Settings,
    job: str,
    program: Path,
    arguments: Sequence[str],
    checkpoint: str | None = None,
    *,
    say: Sequence[str] = (),
    show: str | None = None,
) -> str:
    """Submit a program of a job with its arguments; returns the job id.

    Raises FlinkError when refused, and ConfigurationError.

    `say`: lines to print once nothing refuses the job. `show`: print the command line after these words, as a person
    types it.
    """
    settings = settings_of(job, stack)
    name = settings.text("FLINK_JOB_NAME")
    active = active_job(settings.flink_rest, name)
    if active is not None:
        raise FlinkError(
            f"job {name} is {active['state']} already as {active['jid']}: a second job would share its "
            "transactional ids; cancel it first (scripts/flink_cancel.sh)"
        )
    if not call(settings.flink_rest, "/taskmanagers")["taskmanagers"]:
        print("submit: the job starts as soon as a TaskManager has registered", file=sys.stderr)
    require_writable_checkpoints(settings)
    for line in say:
        print(line, file=sys.stderr)
    # The client's configuration is of the cluster: the cluster's id is beside the windowing job's checkpoints.
    environment = os.environ | prepare(stack, CLIENT)
    command = client_command(program, checkpoint, arguments)
    if show:
        print(f"   = {show} {shlex.join(command)}", file=sys.stderr)
    # Flink's script would start two more JVMs to read the configuration.
    command[:1] = client(environment)
    for _ in range(SUBMISSIONS):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        submitted = SUBMITTED.search(done.stdout)
        if done.returncode == 0 and submitted is not None:
            return submitted.group(1)
        # The client's own stack trace does not help; the program's last lines do.
        words = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(("\tat ", "\t..."))]
        if not (settings.flink_is_highly_available and lost_its_leader(words)):
            break
        print("submit: another JobManager leads since the job was handed in; asking it for the job", file=sys.stderr)
        # It answers only after it has recovered the jobs that the one before had accepted.
        if (accepted := active_job(settings.flink_rest, name)) is not None:
            return str(accepted["jid"])
    tail = "\n".join(words[-15:])
    raise FlinkError(f"the client could not submit the job; its last lines:\n{tail}")


def lost_its_leader(words: Sequence[str]) -> bool:
    """Return whether the client's lines say that the JobManager which it had reached no longer leads, or is gone."""
    return any(each in line for line in words for each in LEADER_GONE)


def wait_until_running(settings: Settings, job_id: str) -> None:
    """Wait until every task runs.

    Raises FlinkError when the job ends instead, or fails for the same reason again and again, which cancels it, and
    TimedOut.
    """

    def runs() -> bool:
        job = call(settings.flink_rest, f"/jobs/{job_id}")
        states = [vertex["status"] for vertex in job["vertices"]]
        if job["state"] == "RUNNING" and all(state == "RUNNING" for state in states):
            return True
        if job["state"] in ("FAILED", "CANCELED"):
            causes = failures(settings.flink_rest, job_id)
            reason = causes[0][1] if causes else "no cause given"
            raise FlinkError(f"job {job_id} is {job['state']}: {reason}; see scripts/logs.sh jobmanager")
        if failure := repeated([cause for _, cause in failures(settings.flink_rest, job_id)]):
            cancel(settings.flink_rest, job_id)
            raise FlinkError(
                f"job {job_id} failed {SAME_FAILURES} times before it ran, and was cancelled: {failure}; "
                "see scripts/logs.sh taskmanager"
            )
        return False

    wait_until(
        runs,
        f"job {job_id} to run",
        seconds=RUNNING_LIMIT_SECONDS,
        explain=lambda: "is a TaskManager running? see scripts/status.sh",
    )


def repeated(causes: Sequence[str]) -> str | None:
    """The cause that occurs SAME_FAILURES times, if one is."""
    return next((each for each in causes if causes.count(each) >= SAME_FAILURES), None)


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/flink_submit.sh", description="Submit a job.")
    parser.add_argument("--job", choices=JOBS, default=MAIN, help="which one (default: %(default)s)")
    parser.add_argument("--from", dest="checkpoint", metavar="CHECKPOINT", help="a complete checkpoint")
    parser.add_argument("--mode", choices=MODES, help="default: FLINK_MODE in .env")
    parser.add_argument("--say", action="append", default=[], metavar="TEXT", help=argparse.SUPPRESS)
    parser.add_argument("--show", metavar="PREFIX", help="print Flink's own command, as typed behind this")
    parser.add_argument(
        "--program", type=Path, metavar="FILE.py", help="a changed program of this job; its own arguments follow --"
    )
    parser.add_argument("words", nargs="*", metavar="ARGUMENT", help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if arguments.words and not arguments.program:
        parser.error("words after -- are for the program of --program FILE.py")
    if arguments.program and not arguments.program.is_file():
        parser.error(f"--program: there is no file {arguments.program}")
    try:
        stack = Settings()
        mode = arguments.mode or stack.text("FLINK_MODE")
        program = (arguments.program or PROGRAMS[arguments.job]).resolve()
        words = ["--mode", mode, *arguments.words]
        checkpoint, lines, show = arguments.checkpoint, arguments.say, arguments.show
        job_id = submit(stack, arguments.job, program, words, checkpoint, say=lines, show=show)
        print(job_id, flush=True)
        wait_until_running(stack, job_id)
    except KeyboardInterrupt:
        print("submit: interrupted; scripts/flink_status.sh shows whether the job was submitted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    run("submit", main)
