"""One service: start, stop, kill, pause, resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from faultline.messages import say
from faultline.stack.backend import KILL, PAUSE, PAUSED, RESUME, RUNNING, START, STOP
from faultline.stack.errors import StackError
from faultline.stack.services import Service
from faultline.waiting import wait_until

if TYPE_CHECKING:
    from faultline.stack.stack import Stack

_START_SECONDS = 180.0


def start(stack: Stack, row: Service, flags: Sequence[str]) -> None:
    """Start a service of a stack, with further flags for it; returns when it answers."""
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
        return
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


def check_flags(stack: Stack, row: Service, flags: Sequence[str]) -> None:
    """Refuse flags that the service would refuse only after its start, in its log. Raises StackError."""
    if not flags:
        return
    if row.flags is None:
        raise StackError(f"service {row.name} takes no arguments; generator and spark do")
    done = stack.backend.tool(["python", "-m", row.flags, "--check-flags", *flags])
    if done.returncode:
        raise StackError("", done.returncode)


def stop(stack: Stack, row: Service) -> None:
    """Stop a service with SIGTERM."""
    state = stack.backend.state(row)
    stack.show(lambda: stack.backend.typed_act(row, STOP))
    # Also when it seems to have ended: its record may be lost, and processes be left.
    stack.backend.stop(row)
    say(f"{row.name} has stopped" if state in (RUNNING, PAUSED) else f"{row.name} was {state} already")


def kill(stack: Stack, row: Service) -> None:
    """Kill all processes of a service with SIGKILL."""
    stack.require_alive(row)
    stack.show(lambda: stack.backend.typed_act(row, KILL))
    stack.backend.kill(row)
    say(f"{row.name} was killed; start it again with scripts/start.sh {row.name}")


def pause(stack: Stack, row: Service) -> None:
    """Freeze a service."""
    stack.require_running(row)
    stack.show(lambda: stack.backend.typed_act(row, PAUSE))
    stack.backend.pause(row)
    say(f"{row.name} is frozen; scripts/resume.sh {row.name} resumes it")


def resume(stack: Stack, row: Service) -> None:
    """Resume a frozen service."""
    state = stack.backend.state(row)
    if state != PAUSED:
        raise StackError(f"service {row.name} is {state}, not paused")
    stack.show(lambda: stack.backend.typed_act(row, RESUME))
    stack.backend.resume(row)
    say(f"{row.name} was resumed")
