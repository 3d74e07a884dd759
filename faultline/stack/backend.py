"""The interface that the two backends have in common, and the names to choose between the backends."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from faultline.stack.services import Service

RUNNING, PAUSED, EXITED, ABSENT = "running", "paused", "exited", "absent"
"""States of a service."""
LOCAL, COMPOSE = "local", "compose"
ACTS = (START, STOP, KILL, PAUSE, RESUME) = ("start", "stop", "kill", "pause", "resume")
"""Acts on a service."""


class Backend(Protocol):
    """The place where services run. Code outside a backend does not know which one it is."""

    name: str

    def prepare(self) -> None:
        """Fetch or build all that the services need; quick when all of it exists."""
        ...

    def fetch(self) -> None:
        """Fetch or build everything, so that nothing needs a network later."""
        ...

    def is_prepared(self) -> bool:
        """Return whether `prepare` has nothing to fetch or build."""
        ...

    def check_capacity(self) -> None:
        """Raise StackError when this machine lacks the memory, the disk or the ports that a start needs."""
        ...

    def up(self) -> None:
        """Start every service that does not run, and the Flink job; a failure leaves running services alone."""
        ...

    def down(self, *, wipe: bool) -> list[Path]:
        """Stop every service; with `wipe` also remove what the stack owns, and print it."""
        ...

    def start(self, service: Service, arguments: Sequence[str]) -> None:
        """Start a service that does not run; returns when its process exists."""
        ...

    def stop(self, service: Service) -> None:
        """SIGTERM, then wait for the end; SIGKILL after its grace period."""
        ...

    def kill(self, service: Service) -> None:
        """SIGKILL to all processes of a service."""
        ...

    def pause(self, service: Service) -> None:
        """Freeze all processes of a service."""
        ...

    def resume(self, service: Service) -> None:
        """Resume a frozen service."""
        ...

    def state(self, service: Service) -> str:
        """One of RUNNING, PAUSED, EXITED, ABSENT."""
        ...

    def states(self) -> Mapping[str, str]:
        """The state of every service by its name, at the price of one question."""
        ...

    def answers(self, service: Service) -> bool:
        """Return whether it takes requests; for a service without a port, whether it runs."""
        ...

    def log(self, service: Service, lines: int) -> str:
        """The last lines of its log."""
        ...

    def memories(self) -> Mapping[str, int]:
        """Resident bytes of the processes of every service that runs, by its name."""
        ...

    def settings_of(self, service: Service) -> Mapping[str, str]:
        """The settings that a running service was started with."""
        ...

    def execute(
        self,
        service: Service,
        command: Sequence[str],
        *,
        capture: bool = False,
        check: bool = True,
        quiet: bool = False,
        piped: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the environment of a service, with its tools on PATH.

        `capture` returns its stdout, `quiet` drops its stderr, `piped` lets it read this program's stdin. With `check`
        a failure raises StackError without a message: the command has printed the reason.
        """
        ...

    def tool(
        self,
        command: Sequence[str],
        *,
        environment: str = "tools",
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        capture: bool = False,
        beside: Service | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of an environment (`tools`: verdict, inspector; or `flink`), whether a service runs or not.

        Besides the stack's own files it sees those files and folders of the host that are named here. `beside`: a
        service of that environment in whose container a small command may run, which answers sooner than one of its own
        starts.
        """
        ...

    def help_of(self, module: Sequence[str], environment: str) -> str:
        """Return the output of `python -m MODULE --help`; the command needs no files of the stack, and creates none."""
        ...

    def typed(self, service: Service, command: Sequence[str]) -> str:
        """Return the line that a person types to run a command in the environment of a service."""
        ...

    def typed_act(self, service: Service, act: str, arguments: Sequence[str] = ()) -> str:
        """Return the line that a person types for one of ACTS; `arguments`: flags of a start."""
        ...

    def path_inside(self, path: Path) -> str:
        """Return the path under which services see a file of the host."""
        ...

    def path_outside(self, path: str) -> str:
        """Return the path on the host of a file that services see."""
        ...

    @property
    def bootstrap_inside(self) -> str:
        """`host:port` of each broker, with commas between them, for a command that runs beside them."""
        ...

    def explain(self) -> str:
        """The last log lines of each unhealthy service, for a start that failed."""
        ...


def last_lines(text: str, lines: int) -> str:
    """Cut a log to its last lines."""
    return "\n".join(text.splitlines()[-lines:])
