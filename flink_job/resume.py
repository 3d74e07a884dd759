"""Submit the Flink job from its newest retained checkpoint, or from the beginning when there is none.

Usage: python -m flink_job.resume

Does nothing while the job is active, so that the stack can be started again. Exit codes: those of flink_job.submit.
"""

from __future__ import annotations

import json
import subprocess
import sys

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import ROOT, Settings
from faultline.waiting import wait_until
from flink_job.rest import active_job

_NOTHING_TO_RESTORE = 3
"""Exit code of `faultline.inspector.flink restore-point` when there is no checkpoint at all."""
_ENDING_STATES = frozenset({"FAILING", "CANCELLING"})
_ENDING_LIMIT_SECONDS = 60


def is_active(settings: Settings) -> bool:
    """Return whether the job is active; waits for a job that is about to end. Raises FlinkError and TimedOut."""

    def state() -> str | None:
        job = active_job(settings.flink_rest, settings.text("FLINK_JOB_NAME"))
        return str(job["state"]) if job else None

    wait_until(
        lambda: state() not in _ENDING_STATES,
        "the end of a job that is failing or being cancelled",
        seconds=_ENDING_LIMIT_SECONDS,
        explain=lambda: "see scripts/flink_status.sh",
    )
    return state() is not None


def main() -> int:
    """Run the command line; returns an exit code when nothing has to be submitted."""
    if is_active(Settings()):
        print("submit: the job is already active", file=sys.stderr)
        return 0
    command = [sys.executable, "-m", "faultline.inspector.flink", "restore-point", "latest"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    submit = [sys.executable, "-m", "flink_job.submit"]
    if found.returncode == 0:
        point = json.loads(found.stdout)
        read = json.dumps(point["offsets"])
        print(f"submit: the job continues from {point['path']}, offset of each partition: {read}", file=sys.stderr)
        submit += ["--from", point["path"]]
    elif found.returncode == _NOTHING_TO_RESTORE:
        print("submit: no retained checkpoint; the job reads the topic from its earliest offset", file=sys.stderr)
    else:
        sys.stderr.write(found.stderr)
        return found.returncode
    return subprocess.run(submit, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    run("submit", main)
