"""Submit the Flink job from a retained checkpoint; runs where the JobManager does.

Usage: python -m faultline.services.restore [latest|chk-N|PATH] [--job JOB] [--at-start] [--outside INSIDE=OUTSIDE]
       [FLAG OF flink_job.submit...]

`--at-start`: for each start of the stack. A job that is active stays, and without a checkpoint the job reads the topic
from its earliest offset. `--outside`: the name on the host of a folder that is mounted here, for messages.

Prints the job id. Exit codes: 0 the job runs, 1 the checkpoint cannot be restored, 2 the job does not run, 3 there is
no checkpoint.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.jobs import JOBS, MAIN, settings_of
from faultline.inspector.errors import NothingToRestore, reading
from faultline.inspector.flink.folder import LATEST
from faultline.inspector.flink.restore_point import RestorePoint, restore_point
from faultline.settings import Settings
from faultline.storage.data import flink_checkpoints
from faultline.waiting import wait_until
from flink_job import submit
from flink_job.rest import active_job

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


def notes(point: RestorePoint, topic: str, outside: str) -> list[str]:
    """Return what a person should know of a restore, before it. `outside`: as the flag."""
    inside, _, host = outside.partition("=")
    path = str(point.path)
    lines = [
        f"restoring from {host + path[len(inside) :] if inside and path.startswith(f'{inside}/') else path}",
        f"the job continues from these offsets of {topic}, partition to offset: {json.dumps(point.offsets)}",
    ]
    name, newest = point.path.name, point.newest.name
    if point.path != point.newest:
        lines.append(f"note: {newest} is newer; windows committed since {name} will be written a second time")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code. Raises FlinkError, InspectorError, SettingsError and TimedOut."""
    parser = argparse.ArgumentParser(prog="scripts/flink_restore.sh", description="Restore a job.", allow_abbrev=False)
    parser.add_argument("which", nargs="?", default=LATEST)
    parser.add_argument("--job", choices=JOBS, default=MAIN)
    parser.add_argument("--at-start", action="store_true")
    parser.add_argument("--outside", default="")
    # Words of a changed program follow.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, flags = parser.parse_known_args(arguments[:end])
    settings = settings_of(chosen.job, Settings())
    if chosen.at_start and is_active(settings):
        print("submit: the job is already active", file=sys.stderr)
        return 0
    words = ["--job", chosen.job, *flags]
    rest = arguments[end:]
    try:
        with reading("a checkpoint"):
            point = restore_point(chosen.which, flink_checkpoints(settings))
        said = notes(point, settings.text("VISITS_TOPIC"), chosen.outside)
        words += ["--from", str(point.path), *(word for note in said for word in ("--say", note))]
    except NothingToRestore:
        if not chosen.at_start:
            raise
        print("submit: no retained checkpoint; the job reads the topic from its earliest offset", file=sys.stderr)
    return submit.main([*words, *rest])


if __name__ == "__main__":
    run("submit", lambda: main(sys.argv[1:]))
