"""One service: start, stop, kill, pause, resume, its log, and commands in its environment."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence

from faultline.messages import say
from faultline.stack.backend import ACTS, START
from faultline.stack.errors import StackError
from faultline.stack.services import Service
from faultline.stack.stack import Stack
from faultline.verbs.arguments import count

_LOG_LINES = 50


def start(stack: Stack, words: Sequence[str]) -> int:
    """Start one service of a stack; further words are flags for it."""
    stack.start(_named(stack, "start", words).name, words[1:])
    return 0


def _act(verb: str) -> Callable[[Stack, Sequence[str]], int]:
    """Make the verb for an act on one service, without flags."""

    def run(stack: Stack, words: Sequence[str]) -> int:
        getattr(stack, verb)(_only(stack, verb, words))
        return 0

    return run


BY_ACT = {act: start if act == START else _act(act) for act in ACTS}
"""The verb of each act."""


def logs(stack: Stack, words: Sequence[str]) -> int:
    """Show the last log lines of a service."""
    row = _named(stack, "logs", words)
    lines = count(words[1], "the number of lines") if len(words) > 1 else _LOG_LINES
    log = stack.backend.log(row, lines)
    if not log:
        say(f"{row.name} has no log yet; it is {stack.backend.state(row)}")
        return 0
    sys.stdout.write(log + "\n")
    return 0


def execute(stack: Stack, words: Sequence[str]) -> int:
    """Run a command in the environment of a service, with its tools on PATH."""
    row = _named(stack, "exec", words)
    if len(words) == 1:
        raise StackError("which command? e.g. scripts/exec.sh jobmanager flink list")
    return stack.backend.execute(row, list(words[1:]), check=False, piped=_is_piped()).returncode


def _is_piped() -> bool:
    """Return whether something is piped into this program: a pipe or a file, and no terminal."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _named(stack: Stack, verb: str, words: Sequence[str]) -> Service:
    if not words:
        raise StackError(f"which service? see scripts/{verb}.sh --help")
    return stack.service(words[0])


def _only(stack: Stack, verb: str, words: Sequence[str]) -> str:
    row = _named(stack, verb, words)
    if len(words) > 1:
        raise StackError(f"unknown argument '{words[1]}'; see scripts/{verb}.sh --help")
    return row.name
