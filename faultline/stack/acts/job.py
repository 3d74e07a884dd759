"""The Flink job: submit, cancel, restore, checkpoints. Requests to Flink are in flink_job and inspector."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.formats.checkpoint import Checkpoint
from faultline.stack.errors import StackError
from faultline.stack.settings import SHOW_COMMANDS

if TYPE_CHECKING:
    from faultline.stack.stack import Stack

_INSPECT = ("python", "-m", "faultline.inspector.flink")
_KILLED = 128 + signal.SIGKILL


def submit(stack: Stack, flags: Sequence[str]) -> str:
    """Submit the job, to read the topic from its earliest offset; returns what the program prints: the job's id."""
    stack.running("kafka")
    return _printed(stack, ["python", "-m", "flink_job.submit", *_shown(stack), *flags])


def cancel(stack: Stack, flags: Sequence[str]) -> str:
    """Cancel the job; its checkpoints are retained. Returns what the program prints."""
    return _printed(stack, ["python", "-m", "flink_job.cancel", *_shown(stack), *flags])


def restore(stack: Stack, which: str, flags: Sequence[str]) -> str:
    """Submit the job from a retained checkpoint: `latest`, `chk-N` or a path; returns the job's id."""
    home = stack.home.root
    if "/" in which and "://" not in which:
        which = stack.backend.path_inside(Path(which))
    stack.running("kafka")
    outside = ["--outside", f"{stack.backend.path_inside(home)}={home}"]
    return _printed(stack, ["python", "-m", "faultline.services.restore", which, *outside, *_shown(stack), *flags])


def checkpoints(stack: Stack) -> list[Checkpoint]:
    """The retained checkpoints of the job, and its savepoints, the newest last."""
    done = stack.backend.tool([*_INSPECT, "list", "--json"], environment="flink", capture=True)
    if done.returncode:
        raise StackError("", done.returncode)
    return [Checkpoint.from_json(each) for each in json.loads(done.stdout)]


def run_beside(stack: Stack, command: Sequence[str], *, capture: bool) -> subprocess.CompletedProcess[str]:
    """Run a command beside the JobManager. Raises StackError when it was killed: it could not say so itself."""
    manager = stack.running("jobmanager")
    done = stack.backend.execute(manager, command, capture=capture, check=False)
    if done.returncode == _KILLED:
        raise StackError(
            f"{command[2]} was killed before its end: {manager.name} has stopped, or has no memory left; "
            f"see scripts/status.sh and scripts/logs.sh {manager.name}",
            done.returncode,
        )
    return done


def _printed(stack: Stack, command: Sequence[str]) -> str:
    """Return what a command beside the JobManager prints. Raises StackError; the command has said why."""
    done = run_beside(stack, command, capture=True)
    if done.returncode:
        raise StackError("", done.returncode)
    return done.stdout


def _shown(stack: Stack) -> list[str]:
    """Return the flag that prints Flink's own command line as a person types it, when SHOW_COMMANDS asks for it."""
    if not stack.settings.values.get(SHOW_COMMANDS):
        return []
    return ["--show", stack.backend.typed(stack.running("jobmanager"), [])]
