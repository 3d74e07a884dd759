"""One service: start, stop, kill, pause, resume, its log, and commands in its environment."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence

from faultline.messages import say
from faultline.stack.arguments import count
from faultline.stack.backend import KILL, PAUSE, PAUSED, RESUME, RUNNING, START, STOP
from faultline.stack.errors import StackError
from faultline.stack.services import Service
from faultline.stack.stack import Stack
from faultline.waiting import wait_until

_START_SECONDS = 180.0
_LOG_LINES = 50


def start(stack: Stack, words: Sequence[str]) -> int:
    """Start one service of a stack; further words are flags for it."""
    row, flags = _named(stack, "start", words), list(words[1:])
    stack.warn()
    stack.home.require_marker()
    stack.home.require_topics_on(stack.topics)
    for family in row.needs if stack.home.up() or row.family == "kafka" else ("kafka", *row.needs):
        if stack.copies(family):
            stack.running(family)
    state = stack.backend.state(row)
    if state == PAUSED:
        raise StackError(f"{row.name} is frozen; resume it with scripts/resume.sh {row.name}")
    if state == RUNNING:
        if flags:
            raise StackError(
                f"{row.name} is running already and cannot take {' '.join(flags)}; "
                f"stop it first: scripts/stop.sh {row.name}"
            )
        say(f"{row.name} is running already")
        return 0
    check_flags(stack, row, flags)
    stack.show(lambda: stack.backend.typed_act(row, START, flags))
    stack.backend.start(row, flags)
    wait_until(
        lambda: stack.backend.answers(row) or stack.backend.state(row) != RUNNING,
        f"{row.name} to answer",
        seconds=_START_SECONDS,
    )
    if stack.backend.state(row) != RUNNING and not row.may_finish:
        raise StackError(f"{row.name} ended during its start; its last lines:\n{stack.backend.log(row, 8)}")
    say(f"{row.name} was started")
    if row.family == "jobmanager" and len(stack.copies(row.family)) == 1:
        say("a job that ran on the previous JobManager is gone; restore it with scripts/flink_restore.sh latest")
    return 0


def check_flags(stack: Stack, row: Service, flags: Sequence[str]) -> None:
    """Refuse flags that the service would refuse only after its start, in its log. Raises StackError."""
    if not flags:
        return
    if row.flags is None:
        raise StackError(f"service {row.name} takes no arguments; generator and spark do")
    done = stack.backend.tool(["python", "-m", row.flags, "--check-flags", *flags])
    if done.returncode:
        raise StackError("", done.returncode)


def stop(stack: Stack, words: Sequence[str]) -> int:
    """Stop one service with SIGTERM."""
    row = _only(stack, "stop", words)
    state = stack.backend.state(row)
    stack.show(lambda: stack.backend.typed_act(row, STOP))
    # Also when it seems to have ended: its record may be lost, and processes be left.
    stack.backend.stop(row)
    say(f"{row.name} has stopped" if state in (RUNNING, PAUSED) else f"{row.name} was {state} already")
    return 0


def kill(stack: Stack, words: Sequence[str]) -> int:
    """Kill all processes of a service with SIGKILL."""
    row = _only(stack, "kill", words)
    stack.require_alive(row)
    stack.show(lambda: stack.backend.typed_act(row, KILL))
    stack.backend.kill(row)
    say(f"{row.name} was killed; start it again with scripts/start.sh {row.name}")
    return 0


def pause(stack: Stack, words: Sequence[str]) -> int:
    """Freeze a service."""
    row = _only(stack, "pause", words)
    stack.require_running(row)
    stack.show(lambda: stack.backend.typed_act(row, PAUSE))
    stack.backend.pause(row)
    say(f"{row.name} is frozen; scripts/resume.sh {row.name} resumes it")
    return 0


def resume(stack: Stack, words: Sequence[str]) -> int:
    """Resume a frozen service."""
    row = _only(stack, "resume", words)
    state = stack.backend.state(row)
    if state != PAUSED:
        raise StackError(f"service {row.name} is {state}, not paused")
    stack.show(lambda: stack.backend.typed_act(row, RESUME))
    stack.backend.resume(row)
    say(f"{row.name} was resumed")
    return 0


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


def _only(stack: Stack, verb: str, words: Sequence[str]) -> Service:
    row = _named(stack, verb, words)
    if len(words) > 1:
        raise StackError(f"unknown argument '{words[1]}'; see scripts/{verb}.sh --help")
    return row
