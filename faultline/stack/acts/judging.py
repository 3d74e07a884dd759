"""Settle the stack, and judge it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from faultline.formats.verdict import ALL, Outcome, Verdicts
from faultline.stack.backend import PAUSED, RUNNING
from faultline.stack.errors import StackError

if TYPE_CHECKING:
    from faultline.stack.stack import Stack

SETTLE_SECONDS = 120
JUDGED = tuple(outcome.exit_code for outcome in Outcome)
"""Exit codes of a verdict."""


def close(stack: Stack) -> None:
    """Close the windows that are open. Raises StackError while the generator would open others."""
    state = stack.backend.state(stack.service("generator"))
    if state in (RUNNING, PAUSED):
        raise StackError(
            f"the generator is {state}, and its next visits would open windows again; "
            "stop it with scripts/generator_stop.sh"
        )
    stack.running("kafka")
    # Its messages go to stderr; the one line on stdout comes at the end.
    stack.backend.execute(stack.service("generator"), ["python", "-m", "generator.close"], capture=True)


def settled(stack: Stack, seconds: int) -> str:
    """Wait until both pipelines have committed everything; returns the line that says so. Raises StackError."""
    command = ["python", "-m", "faultline.verdict.settled", "--wait", str(seconds)]
    done = stack.backend.tool(command, capture=True)
    if done.returncode:
        raise StackError("", done.returncode)
    return done.stdout


def keeping(stack: Stack) -> list[str]:
    """The words with which a verdict on the stack itself is kept, for its metrics."""
    return ["--keep", stack.backend.path_inside(stack.settings.typed.newest_verdict)]


def verdict(stack: Stack, *, as_is: bool) -> Verdicts:
    """Judge the source and both pipelines. Raises StackError when there is no verdict."""
    command = ["python", "-m", "faultline.verdict", ALL, "--json", *keeping(stack), *(["--as-is"] if as_is else [])]
    done = stack.backend.tool(command, capture=True)
    if done.returncode not in JUDGED or not done.stdout:
        raise StackError("", done.returncode)
    return Verdicts.from_json(json.loads(done.stdout))
