"""Steps of a fault: acts on a stack, each of which renders the line that a person types.

A step says what it does by its type, so whoever wants to know whether a row kills the broker asks `Kill("kafka")`.
A step may name what only the stack knows, as {name}; `faultline.faults.scene.Scene.PLACES` has all names. {newest} and
{oldest} are the Flink job's complete checkpoints, {spark} is the synchronizer's, {flink} the folder of all of Flink's,
and {output} the folder that the synchronizer writes to. They are paths where a row needs Need.DISK, and may be URIs
elsewhere. Folders of this machine are {notes} of the synchronizer, with the mark of a held batch beside it, {broker} of
the broker's data, and {results} of the row. {working} is the TaskManager that runs the job's tasks, {leading} the
JobManager that leads, {controlling} the broker that is the active controller. {inner_ports} are the ports on which that
broker listens for others, and then those on which they do. {bootstrap} has the brokers' addresses as their own
containers see them; {kafka_port} and {rpc_port} are those of the broker and of the JobManager.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from faultline.formats.jobs import EXACTLY_ONCE
from faultline.settings import PREFIX

LATEST, NEWEST, OLDEST = "latest", "{newest}", "{oldest}"
"""Checkpoints to restore: the newest one that can be restored, the newest complete one, the oldest complete one."""
WORKING, LEADING, CONTROLLING = "{working}", "{leading}", "{controlling}"
"""Services that only the stack knows."""


class Step:
    """One act. Its `line` is what a person types in the project's folder."""

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
    """Any line of a shell: damage to files, rules of a firewall, a wait for a condition."""

    text: str

    @property
    def line(self) -> str:
        """The line itself."""
        return self.text


@dataclass(frozen=True)
class OnService(Step):
    """An act on one service."""

    service: str
    verb: ClassVar[str]

    @property
    def line(self) -> str:
        """The script with the service."""
        return f"scripts/{self.verb}.sh {self.service}"


class Start(OnService):
    """Start a service."""

    verb = "start"


class Stop(OnService):
    """SIGTERM, and SIGKILL after its grace period."""

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
class _Script(Step):
    """A script with flags."""

    flags: str = ""
    script: ClassVar[str]

    @property
    def line(self) -> str:
        """The script with its flags."""
        return f"scripts/{self.script}.sh {self.flags}".rstrip()


class StartGenerator(_Script):
    """Start the generator."""

    script = "generator_start"


class StopGenerator(_Script):
    """Stop the generator."""

    script = "generator_stop"


@dataclass(frozen=True)
class StartSynchronizer(Step):
    """Start the synchronizer. `hold`: the batch that it holds between its offsets file and its commit."""

    hold: str = ""

    @property
    def line(self) -> str:
        """The script with the batch."""
        return f"scripts/spark_start.sh{f' --hold-batch {self.hold}' if self.hold else ''}"


class StopSynchronizer(_Script):
    """Stop the synchronizer after its batch."""

    script = "spark_stop"


class Cancel(_Script):
    """Cancel the Flink job; its checkpoints are retained."""

    script = "flink_cancel"


class Submit(_Script):
    """Submit the Flink job, to read the topic from its earliest offset."""

    script = "flink_submit"


@dataclass(frozen=True)
class Restore(Step):
    """Submit the Flink job from a checkpoint. `settings`: those of this submit alone, name without prefix to value."""

    checkpoint: str = LATEST
    mode: str = EXACTLY_ONCE
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """The script with the checkpoint and, where it is not the usual one, the mode."""
        chosen = "".join(f"{PREFIX}{name}={value} " for name, value in self.settings)
        mode = "" if self.mode == EXACTLY_ONCE else f" --mode {self.mode}"
        return f"{chosen}scripts/flink_restore.sh {self.checkpoint}{mode}"


@dataclass(frozen=True)
class SubmitChanged(Step):
    """Submit a changed copy of the job; `change`: one of `faultline.faults.changed_job.CHANGES`.

    `restores`: it continues from the newest checkpoint.
    """

    change: str
    restores: bool = True

    @property
    def line(self) -> str:
        """The program that changes the copy, where the JobManager runs."""
        flag = " --restore" if self.restores else ""
        return f"scripts/exec.sh jobmanager python -m faultline.faults.changed_job {self.change}{flag}"


class Up(_Script):
    """Start all that does not run."""

    script = "up"


class Down(_Script):
    """Stop the whole stack."""

    script = "down"


class Settle(_Script):
    """Close the open windows, and wait until both pipelines have committed everything."""

    script = "settle"


@dataclass(frozen=True)
class Later(Step):
    """A step that comes so many seconds after the one before."""

    seconds: float
    step: Step

    @property
    def after(self) -> float:
        """The seconds."""
        return self.seconds

    @property
    def line(self) -> str:
        """The line of the step."""
        return self.step.line


@dataclass(frozen=True)
class Refused(Step):
    """A step that must fail, with these words in its message."""

    step: Step
    words: str

    @property
    def refused(self) -> str:
        """The words."""
        return self.words

    @property
    def line(self) -> str:
        """The line of the step."""
        return self.step.line


def until(seconds: int, condition: str) -> Line:
    """A line that waits for a condition, so long at most; Ctrl-C ends it too."""
    return Line(f"timeout --foreground {seconds} bash -c 'until {condition}; do sleep 0.1; done'")
