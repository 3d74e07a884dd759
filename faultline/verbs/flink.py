"""The Flink job: submit, cancel, restore, status, checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from faultline.stack.acts.job import run_beside
from faultline.stack.stack import LATEST, Stack


def submit(stack: Stack, words: Sequence[str]) -> int:
    """Submit the job, to read the topic from its earliest offset."""
    sys.stdout.write(stack.submit(words))
    return 0


def cancel(stack: Stack, words: Sequence[str]) -> int:
    """Cancel the job; its checkpoints are retained."""
    sys.stdout.write(stack.cancel(words))
    return 0


def restore(stack: Stack, words: Sequence[str]) -> int:
    """Submit the job from a retained checkpoint: `latest`, `chk-N` or a path."""
    flags = list(words)
    which = flags.pop(0) if flags and not flags[0].startswith("--") else LATEST
    sys.stdout.write(stack.restore(which, flags))
    return 0


def status(stack: Stack, words: Sequence[str]) -> int:
    """Show the job as one line of JSON."""
    command = ["python", "-m", "flink_job.status", *words]
    return run_beside(stack, command, capture=False).returncode


def checkpoints(stack: Stack, words: Sequence[str]) -> int:
    """List the checkpoints, whether a JobManager runs or not."""
    command = ["python", "-m", "faultline.inspector.flink", "list", *words]
    return stack.backend.tool(command, environment="flink").returncode
