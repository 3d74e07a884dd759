"""The Flink job: submit, cancel, restore, status, checkpoints. Requests to Flink are in flink_job and inspector."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from faultline.stack.errors import StackError
from faultline.stack.settings import SHOW_COMMANDS
from faultline.stack.stack import Stack

_INSPECT = ("python", "-m", "faultline.inspector.flink")
_KILLED = 128 + signal.SIGKILL


def _execute(stack: Stack, command: Sequence[str], *, capture: bool = False) -> tuple[int, str]:
    """Run a command beside the JobManager; returns its exit code and what it printed, if that is captured.

    Raises StackError when it was killed: it could not say so itself.
    """
    manager = stack.running("jobmanager")
    done = stack.backend.execute(manager, command, capture=capture, check=False)
    if done.returncode == _KILLED:
        raise StackError(
            f"{command[2]} was killed before its end: {manager.name} has stopped, or has no memory left; "
            f"see scripts/status.sh and scripts/logs.sh {manager.name}",
            done.returncode,
        )
    return done.returncode, done.stdout


def _run(stack: Stack, module: str, words: Sequence[str]) -> int:
    return _execute(stack, ["python", "-m", module, *words])[0]


def _job_in(words: Sequence[str]) -> list[str]:
    """Return the flag that names the job, in one form."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--job")
    job = parser.parse_known_args(words)[0].job
    return ["--job", job] if job else []


def _shown(stack: Stack) -> list[str]:
    """Return the flag that prints Flink's own command line as a person types it, when SHOW_COMMANDS asks for it."""
    if not stack.settings.values.get(SHOW_COMMANDS):
        return []
    return ["--show", stack.backend.typed(stack.running("jobmanager"), [])]


def submit(stack: Stack, words: Sequence[str]) -> int:
    """Submit the job, to read the topic from its earliest offset."""
    stack.running("kafka")
    return _run(stack, "flink_job.submit", [*_shown(stack), *words])


def cancel(stack: Stack, words: Sequence[str]) -> int:
    """Cancel the job; its checkpoints are retained."""
    return _run(stack, "flink_job.cancel", [*_shown(stack), *words])


def status(stack: Stack, words: Sequence[str]) -> int:
    """Show the job as one line of JSON."""
    return _run(stack, "flink_job.status", words)


def checkpoints(stack: Stack, words: Sequence[str]) -> int:
    """List the checkpoints, whether a JobManager runs or not."""
    return stack.backend.tool([*_INSPECT, "list", *words], environment="flink").returncode


def restore(stack: Stack, words: Sequence[str]) -> int:
    """Submit the job from a retained checkpoint: `latest`, `chk-N` or a path."""
    which, flags = "latest", list(words)
    if flags and not flags[0].startswith("--"):
        which = flags.pop(0)
    if "/" in which and "://" not in which:
        which = stack.backend.path_inside(Path(which))
    stack.running("kafka")
    code, printed = _execute(stack, [*_INSPECT, *_job_in(flags), "restore-point", which], capture=True)
    if code:
        return code
    point = json.loads(printed)
    checkpoint, newest = point["path"], point["newest"]
    notes = [
        f"restoring from {stack.backend.path_outside(checkpoint)}",
        f"the job continues from these offsets of {stack.settings.values['VISITS_TOPIC']}, "
        f"partition to offset: {json.dumps(point['offsets'])}",
    ]
    if checkpoint != newest:
        name, other = PurePosixPath(checkpoint).name, PurePosixPath(newest).name
        notes.append(f"note: {other} is newer; windows committed since {name} will be written a second time")
    # Said by the program that submits, and only when it does not refuse.
    said = [word for note in notes for word in ("--say", note)]
    return _run(stack, "flink_job.submit", ["--from", checkpoint, *said, *_shown(stack), *flags])
