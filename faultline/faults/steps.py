"""Steps of a fault: acts on a stack, each of which renders the line that a person types.

A step says what it does by its type, so whoever wants to know whether a row kills the broker asks `Kill("kafka")`.
A step may name what only the stack knows, as {name}; `scene.Scene.PLACEHOLDERS` has all names. {newest} and
{oldest} are the Flink job's complete checkpoints, {spark} is the synchronizer's, {newest_commit} the newest file of its
commits, {flink} the folder of all of Flink's, and {output} the folder that the synchronizer writes to. They are paths
where a row needs Need.DISK, and may be URIs elsewhere. Folders of this machine are {notes} of the synchronizer, with
the mark of a held batch beside it, {broker} of the broker's data, and {results} of the row. {one_more} is the number of
checkpoints that the job has completed once the one in progress is complete. {working} is the TaskManager that runs the
job's tasks, {leading} the JobManager that leads, {controlling} the broker that is the active controller. {inner_ports}
are the ports on which that broker listens for others, and then those on which they do. {bootstrap} has the brokers'
addresses as their own containers see them; {kafka_port} and {rpc_port} are those of the broker and of the JobManager.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from faultline.command import CommandError
from faultline.faults.repair import run
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.settings import PREFIX
from faultline.stack.errors import StackError
from faultline.stack.stack import LATEST, Stack

Fill = Callable[[str], str]
"""Puts what the stack knows in the place of each {name}."""
_SHELL_SECONDS = 600
_LATE = 124
"""Exit code of `timeout` for a command that it has ended."""

NEWEST, OLDEST = "{newest}", "{oldest}"
"""Checkpoints to restore, besides LATEST: the newest complete one, and the oldest complete one."""
JOBMANAGER = "jobmanager"
WORKING, LEADING = "{working}", "{leading}"
"""Services that only the stack knows."""
RESULTS = "{results}"
STATUS = "status.json"
"""In the row's results: the status of the job when a checkpoint had begun."""


class Step:
    """One act. Its `line` is what a person types in the project's folder."""

    def act(self, stack: Stack, fill: Fill) -> None:
        """Do it. Raises StackError."""
        raise NotImplementedError

    @property
    def after(self) -> float:
        """Seconds to wait first."""
        return 0.0

    @property
    def refused(self) -> str:
        """Words of the message with which it must fail; empty when it must succeed."""
        return ""

    @property
    def line(self) -> str:
        """The line, with {names} that are not filled in."""
        raise NotImplementedError


@dataclass(frozen=True)
class Line(Step):
    """Any line of a shell: damage to files, rules of a firewall, or a wait for files."""

    text: str

    def act(self, stack: Stack, fill: Fill) -> None:
        """Run it by bash, in the project's folder."""
        done = run(["bash", "-c", fill(self.text)], stack.variables, _SHELL_SECONDS)
        if done.returncode:
            raise StackError(done.stdout + done.stderr, done.returncode)

    @property
    def line(self) -> str:
        """The line itself."""
        return self.text


@dataclass(frozen=True)
class OnService(Step):
    """An act on one service. `flags`: further flags of a start."""

    service: str
    flags: str = ""
    verb: ClassVar[str]

    def act(self, stack: Stack, fill: Fill) -> None:
        """Act on the service."""
        flags = [shlex.split(fill(self.flags))] if self.flags else []
        getattr(stack, self.verb)(fill(self.service), *flags)

    @property
    def line(self) -> str:
        """The script with the service and the flags."""
        known = (self.service, self.verb) in _OF_ITS_OWN
        script = f"{self.service}_{self.verb}.sh" if known else f"{self.verb}.sh {self.service}"
        return f"scripts/{script} {self.flags}".rstrip()


_OF_ITS_OWN = {(service, verb) for service in ("generator", "spark") for verb in ("start", "stop")}
"""Acts that have a script of their own."""


class Start(OnService):
    """Start a service."""

    verb = "start"


class Stop(OnService):
    """SIGTERM to a service, and SIGKILL after its grace period."""

    verb = "stop"


class Kill(OnService):
    """SIGKILL to a service."""

    verb = "kill"


class Pause(OnService):
    """Freeze a service."""

    verb = "pause"


class Resume(OnService):
    """Resume a frozen service."""

    verb = "resume"


@dataclass(frozen=True)
class OnStack(Step):
    """An act on the whole stack, or on its job."""

    verb: ClassVar[str]
    script: ClassVar[str]

    def act(self, stack: Stack, fill: Fill) -> None:  # noqa: ARG002 - as all steps
        """Do it."""
        getattr(stack, self.verb)()

    @property
    def line(self) -> str:
        """The script."""
        return f"scripts/{self.script}.sh"


class Up(OnStack):
    """Start all that does not run."""

    verb = script = "up"


class Down(OnStack):
    """Stop the whole stack."""

    verb = script = "down"


class Reset(OnStack):
    """Stop the whole stack, and remove topics, checkpoints and outputs."""

    verb, script = "down", "reset"

    def act(self, stack: Stack, fill: Fill) -> None:  # noqa: ARG002 - as all steps
        """Do it."""
        stack.down(wipe=True)


class Settle(OnStack):
    """Close the open windows, and wait until both pipelines have committed everything."""

    verb = script = "settle"


class Cancel(OnStack):
    """Cancel the Flink job; its checkpoints are retained."""

    verb, script = "cancel", "flink_cancel"


class Submit(OnStack):
    """Submit the Flink job, to read the topic from its earliest offset."""

    verb, script = "submit", "flink_submit"


@dataclass(frozen=True)
class Restore(Step):
    """Submit the Flink job from a checkpoint. `settings`: those of this submit alone, name without prefix to value."""

    checkpoint: str = LATEST
    mode: str = EXACTLY_ONCE
    settings: tuple[tuple[str, str], ...] = ()

    def act(self, stack: Stack, fill: Fill) -> None:
        """Restore it."""
        flags = [] if self.mode == EXACTLY_ONCE else ["--mode", self.mode]
        stack.having(dict(self.settings)).restore(fill(self.checkpoint), flags=flags)

    @property
    def line(self) -> str:
        """The script with the checkpoint and, where it is not the usual one, the mode."""
        chosen = "".join(f"{PREFIX}{name}={value} " for name, value in self.settings)
        mode = "" if self.mode == EXACTLY_ONCE else f" --mode {self.mode}"
        return f"{chosen}scripts/flink_restore.sh {self.checkpoint}{mode}"


@dataclass(frozen=True)
class Inside(Step):
    """A command with the environment of a service.

    `keeps`: the file of the row's results that gets what it prints. `typed`: the script of its own, if it has one.
    """

    service: str
    command: str
    keeps: str = ""
    typed: str = ""

    def act(self, stack: Stack, fill: Fill) -> None:
        """Run it."""
        # With a spare, the one that runs; others may be stopped, and have their environment all the same.
        service = stack.running(JOBMANAGER) if self.service == JOBMANAGER else stack.service(self.service)
        done = stack.backend.execute(service, _limited(fill(self.command)), capture=True, check=False)
        _require_done(done)
        if self.keeps:
            Path(fill(RESULTS), self.keeps).write_text(done.stdout, encoding="utf-8")

    @property
    def line(self) -> str:
        """The command by its script."""
        script = self.typed or f"scripts/exec.sh {self.service} {self.command}"
        return f"{script} >{RESULTS}/{self.keeps}" if self.keeps else script


@dataclass(frozen=True)
class Probe(Step):
    """A program of the tools that has a script of its own name, such as a wait for a moment."""

    program: str
    words: str

    def act(self, stack: Stack, fill: Fill) -> None:
        """Run it with the packages of the tools."""
        command = _limited(f"python -m {self.program} {fill(self.words)}")
        _require_done(stack.backend.tool(command, capture=True))

    @property
    def line(self) -> str:
        """The script."""
        return f"scripts/{self.program.rpartition('.')[2]}.sh {self.words}"


def _limited(command: str) -> list[str]:
    """Return the words of a command that ends after a time: a row that should fail must not wait for ever."""
    return ["timeout", str(_SHELL_SECONDS), *shlex.split(command)]


def _require_done(done: subprocess.CompletedProcess[str]) -> None:
    """Raise StackError with what a command has printed when it failed, or was not done in time."""
    if done.returncode:
        late = f"not done within {_SHELL_SECONDS} s" if done.returncode == _LATE else ""
        raise StackError(f"{done.stdout.strip()} {late}".strip(), done.returncode)


def job_status(flags: str, keeps: str = "") -> Inside:
    """A look at the Flink job, or a wait for its checkpoints."""
    return Inside(JOBMANAGER, f"python -m flink_job.status {flags}", keeps, f"scripts/flink_status.sh {flags}")


@dataclass(frozen=True)
class SubmitChanged(Step):
    """Submit a changed copy of the job; `change`: one of `faultline.faults.changed_job.CHANGES`.

    `restores`: it continues from the newest checkpoint.
    """

    change: str
    restores: bool = True

    def act(self, stack: Stack, fill: Fill) -> None:
        """Run the program that changes the copy, where the JobManager runs."""
        self._inside.act(stack, fill)

    @property
    def line(self) -> str:
        """The program by its script."""
        return self._inside.line

    @property
    def _inside(self) -> Inside:
        flags = " --restore" if self.restores else ""
        return Inside(JOBMANAGER, f"python -m faultline.faults.changed_job {self.change}{flags}")


class Wrapper(Step):
    """A step that says more of another one: when it comes, or how it ends."""

    step: Step

    def act(self, stack: Stack, fill: Fill) -> None:
        """Do the step."""
        self.step.act(stack, fill)

    @property
    def line(self) -> str:
        """The line of the step."""
        return self.step.line


@dataclass(frozen=True)
class Later(Wrapper):
    """A step that comes so many seconds after the one before."""

    seconds: float
    step: Step

    @property
    def after(self) -> float:
        """The seconds."""
        return self.seconds


@dataclass(frozen=True)
class Refused(Wrapper):
    """A step that must fail, with these words in its message."""

    step: Step
    words: str

    @property
    def refused(self) -> str:
        """The words."""
        return self.words


@dataclass(frozen=True)
class Tolerated(Wrapper):
    """A step that may fail: what it does is done already, or not needed then."""

    step: Step

    def act(self, stack: Stack, fill: Fill) -> None:
        """Try the step."""
        with suppress(CommandError):
            self.step.act(stack, fill)

    @property
    def line(self) -> str:
        """The line of the step."""
        return f"{self.step.line} || true"


def until(seconds: int, condition: str) -> Line:
    """A line that waits for a condition, so long at most; Ctrl-C ends it too."""
    return Line(f"timeout --foreground {seconds} bash -c 'until {condition}; do sleep 0.1; done'")
