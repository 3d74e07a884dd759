"""The project's scripts, called for their effect; what repairs a stack after any fault."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from faultline.messages import say
from faultline.settings import PREFIX, ROOT
from faultline.stack.backend import PAUSED, RUNNING
from faultline.stack.errors import StackError
from faultline.stack.stack import open_stack

_SCRIPT_SECONDS = 1800
_CLEAN_UP_SECONDS = 15


def run(command: list[str], environ: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with this Python first on its path; see `run_apart`."""
    return run_apart(
        command, {**environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"}, seconds
    )


def run_apart(command: list[str], environ: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a session of its own.

    After Ctrl-C all of its processes get one too, and have time for their clean-up.

    Raises StackError when it does not end within `seconds`.
    """
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
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


def script(name: str, *words: str, environ: Mapping[str, str] | None = None) -> None:
    """Run scripts/NAME. Raises StackError with its last messages when it fails."""
    say(f"   {name} ...")
    done = run([str(ROOT / "scripts" / name), *words], os.environ if environ is None else environ, _SCRIPT_SECONDS)
    if done.returncode != 0:
        raise StackError(f"scripts/{name} failed:\n" + "\n".join(done.stderr.splitlines()[-8:]))


def keep_settings() -> None:
    """Keep what was chosen for the stack, also after a reset, when nothing else says it."""
    for name, value in open_stack({}).settings.chosen.items():
        os.environ.setdefault(PREFIX + name, value)


def generator_runs() -> bool:
    """Return whether the generator sends visits now."""
    stack = open_stack({})
    return stack.backend.state(stack.service("generator")) == RUNNING


def heal() -> None:
    """Resume what is frozen, start what does not run, restore the job."""
    stack = open_stack({})
    for row in stack.services:
        if stack.backend.state(row) == PAUSED:
            script("resume.sh", row.name)
    script("up.sh")
    if not generator_runs():
        script("generator_start.sh")
