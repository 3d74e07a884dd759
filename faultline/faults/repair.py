"""Commands of a shell, acts whose messages are shown only when they fail, and the repair of a stack."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from faultline.command import CommandError
from faultline.messages import heard, say
from faultline.settings import ROOT
from faultline.stack.backend import PAUSED, RUNNING, last_lines
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack

_SHOWN_LINES = 8
_CLEAN_UP_SECONDS = 15
T = TypeVar("T")


def run(command: list[str], environ: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a session of its own, with this Python first on its path.

    After Ctrl-C all of its processes get one too, and have time for their clean-up.

    Raises StackError when it does not end within `seconds`.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    process = subprocess.Popen(
        command, cwd=ROOT, env={**environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace",
        # A terminal's Ctrl-C does not reach it, so that it gets just one.
        start_new_session=True,
    )  # fmt: skip
    try:
        out, words = process.communicate(timeout=seconds)
    except KeyboardInterrupt:
        _signal_all(process, signal.SIGINT)
        try:
            process.communicate(timeout=_CLEAN_UP_SECONDS)
        except subprocess.TimeoutExpired:
            # A shell takes no notice of Ctrl-C when the command that it had just waited for has ended by itself.
            _signal_all(process, signal.SIGTERM)
            process.communicate()
        raise
    except subprocess.TimeoutExpired:
        _signal_all(process, signal.SIGKILL)
        process.communicate()
        raise StackError(f"not done within {seconds:g} s: {command[-1]}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, words)


def _signal_all(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to every process of a command's session; all of them may have ended just now."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def unheard(act: Callable[[], T]) -> T:
    """Return what an act returns, without showing what is said. Raises StackError with all of that when it fails."""
    with heard() as said:
        try:
            return act()
        except CommandError as error:
            said.extend(str(error).splitlines())
            code = error.code
    raise StackError("\n".join(said), code)


def quietly(title: str, act: Callable[[], object]) -> None:
    """Do something to a stack, and name it. Raises StackError with the last of its messages when it fails."""
    say(f"   {title} ...")
    try:
        unheard(act)
    except StackError as error:
        raise StackError(f"{title} failed:\n{last_lines(str(error), _SHOWN_LINES)}", error.code) from None


def pinned(stack: Stack) -> Stack:
    """Return the stack with what was chosen for it, so that it is the same after a reset."""
    return stack.having(stack.settings.chosen)


def generator_runs(stack: Stack) -> bool:
    """Return whether the generator sends visits now."""
    return stack.backend.state(stack.service("generator")) == RUNNING


def heal(stack: Stack) -> None:
    """Resume what is frozen, start what does not run, restore the job."""
    for row in stack.services:
        if stack.backend.state(row) == PAUSED:
            quietly(f"resume {row.name}", functools.partial(stack.resume, row.name))
    quietly("up", stack.up)
    if not generator_runs(stack):
        quietly("start the generator", functools.partial(stack.start, "generator"))
