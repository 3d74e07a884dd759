"""One stack: its settings, its home, its backend, and all that can be done to it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from faultline.formats.checkpoint import Checkpoint
from faultline.formats.verdict import Verdicts
from faultline.messages import say
from faultline.settings import PREFIX, ROOT, as_environment, store_of_data
from faultline.stack.acts import job as job_acts
from faultline.stack.acts import judging, lifecycle
from faultline.stack.acts import service as service_acts
from faultline.stack.acts.status import Status
from faultline.stack.acts.status import status as status_of
from faultline.stack.backend import COMPOSE, LOCAL, PAUSED, RUNNING, Backend
from faultline.stack.backends.compose import ComposeBackend
from faultline.stack.backends.containers import engine_problem
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.home import Home, Topics
from faultline.stack.lock import exclusive
from faultline.stack.services import Service, copies, service, services
from faultline.stack.settings import SHOW_COMMANDS, StackSettings, is_loopback, load, unknown_variables

LATEST = "latest"
"""The newest checkpoint that can be restored."""
_BACKENDS: dict[str, Callable[[StackSettings, Home], Backend]] = {LOCAL: LocalBackend, COMPOSE: ComposeBackend}


@dataclass(frozen=True)
class Stack:
    """The stack to act on. `reason`: why this backend was chosen; `flags`: settings of the command line.

    An act that changes the stack waits until no other command does, and then begins with the stack as it is. Acts raise
    StackError, whose message is empty when a program has said the reason already.
    """

    settings: StackSettings
    home: Home
    backend: Backend
    reason: str
    flags: Mapping[str, str] = field(default_factory=dict)

    def having(self, settings: Mapping[str, str]) -> Stack:
        """Return this stack, to act on it with these settings too; name without prefix, and value."""
        return open_stack({**self.flags, **settings}, self.environ)

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment that the settings came from."""
        return self.settings.host

    @property
    def variables(self) -> dict[str, str]:
        """The environment with which a script acts on this stack as this one does."""
        return {**self.environ, **as_environment(self.flags)}

    @property
    def address(self) -> str:
        """The address of the services' ports."""
        return self.settings.values["BIND_ADDRESS"]

    def is_up(self) -> bool:
        """Return whether the stack was brought up here and a broker runs."""
        return self.home.up() is not None and any(self.backend.state(row) == RUNNING for row in self.copies("kafka"))

    @property
    def services(self) -> tuple[Service, ...]:
        """The services that keep running."""
        return services(self.settings.values)

    def service(self, name: str) -> Service:
        """Find a service by its name. Raises StackError that lists the names."""
        return service(name, self.settings.values)

    def copies(self, family: str) -> tuple[Service, ...]:
        """A service and its copies in this stack, the first one first."""
        return copies(family, self.settings.values)

    @property
    def data(self) -> str:
        """Location of the checkpoints, in the form that a marker keeps: empty for the disk."""
        return store_of_data(self.settings.values)

    @property
    def profile(self) -> str:
        """Its profile, which is the file `.env.<profile>`; empty without one."""
        return self.settings.values["PROFILE"]

    @property
    def topics(self) -> Topics:
        """Properties of this stack that its topics are bound to."""
        return Topics(self.backend.name, len(self.copies("kafka")), self.data, self.profile)

    def running(self, family: str) -> Service:
        """The service, or the first of its copies that runs: one is as good as another. Raises StackError."""
        rows = self.copies(family)
        for row in rows:
            if self.backend.state(row) == RUNNING:
                return row
        self.require_running(rows[0])
        return rows[0]

    def require_running(self, row: Service) -> None:
        """Raise StackError when a service does not run."""
        state = self.backend.state(row)
        if state != RUNNING:
            raise StackError(
                f"service {row.name} is {state}; start it with scripts/start.sh {row.name}, "
                "or start the stack with scripts/up.sh"
            )

    def require_alive(self, row: Service) -> None:
        """Raise StackError when a service neither runs nor is frozen."""
        state = self.backend.state(row)
        if state not in (RUNNING, PAUSED):
            raise StackError(f"service {row.name} is {state}, so no signal can be sent; scripts/status.sh shows all")

    @contextlib.contextmanager
    def changing(self, *, creates: bool = False) -> Iterator[Stack]:
        """Let only one command change this stack at a time; yields the stack as it is once the others are done.

        `creates`: the home is created when it is missing, and removed again when the block leaves it empty.
        """
        root = self.home.root
        created = creates and not root.is_dir()
        if created:
            root.mkdir(parents=True)
        try:
            if not root.is_dir():
                yield self
                return
            # The folder itself is locked: a lock file would be a trace of a command that is refused.
            with exclusive(root, "another command is changing this stack; waiting for it ..."):
                yield open_stack(self.flags, self.environ)
        finally:
            if created:
                with contextlib.suppress(OSError):
                    root.rmdir()

    def show(self, line: Callable[[], str]) -> None:
        """Print the command behind a verb, when SHOW_COMMANDS asks for it."""
        if self.settings.values.get(SHOW_COMMANDS) and (typed := line()):
            say(f"   = {typed}")

    def warn(self) -> None:
        """Print which environment variables are not used."""
        for warning in self.settings.warnings:
            say(f"note: {warning}")
        for name in unknown_variables(self.environ, self.settings.values):
            say(f"note: {name} sets nothing; .env has the names of the settings")

    # Acts

    def up(self) -> None:
        """Start all that does not run, and the Flink job when there is none."""
        with self.changing(creates=True) as now:
            lifecycle.up(now)

    def start_brokers(self) -> None:
        """Start the brokers that do not run, and nothing else."""
        with self.changing(creates=True) as now:
            lifecycle.start_brokers(now)

    def down(self, *, wipe: bool = False) -> None:
        """Stop everything; with `wipe` also remove topics, checkpoints and outputs."""
        with self.changing() as now:
            lifecycle.down(now, wipe=wipe)

    def start(self, name: str, flags: Sequence[str] = ()) -> None:
        """Start a service, with further flags for it; returns when it answers."""
        with self.changing() as now:
            service_acts.start(now, now.service(name), flags)

    def stop(self, name: str) -> None:
        """SIGTERM to a service, and SIGKILL after its grace period."""
        with self.changing() as now:
            service_acts.stop(now, now.service(name))

    def kill(self, name: str) -> None:
        """SIGKILL to all processes of a service."""
        with self.changing() as now:
            service_acts.kill(now, now.service(name))

    def pause(self, name: str) -> None:
        """Freeze a service."""
        with self.changing() as now:
            service_acts.pause(now, now.service(name))

    def resume(self, name: str) -> None:
        """Resume a frozen service."""
        with self.changing() as now:
            service_acts.resume(now, now.service(name))

    def submit(self, flags: Sequence[str] = ()) -> str:
        """Submit the Flink job, to read the topic from its earliest offset; returns what the program prints."""
        with self.changing() as now:
            return job_acts.submit(now, flags)

    def cancel(self, flags: Sequence[str] = ()) -> str:
        """Cancel the Flink job, whose checkpoints are retained; returns what the program prints."""
        with self.changing() as now:
            return job_acts.cancel(now, flags)

    def restore(self, checkpoint: str = LATEST, flags: Sequence[str] = ()) -> str:
        """Submit the Flink job from `latest`, `chk-N` or a path; returns what the program prints."""
        with self.changing() as now:
            return job_acts.restore(now, checkpoint, flags)

    def checkpoints(self) -> list[Checkpoint]:
        """The retained checkpoints of the Flink job, and its savepoints, the newest last."""
        return job_acts.checkpoints(self)

    def settle(self, seconds: int = judging.SETTLE_SECONDS) -> str:
        """Close the open windows, and wait until both pipelines have committed everything; returns what is printed."""
        with self.changing() as now:
            judging.close(now)
        return judging.settled(self, seconds)

    def verdict(self, *, as_is: bool = False) -> Verdicts:
        """Judge the source and both pipelines, as `verdict.sh all`. `as_is`: what is not due yet may be pending."""
        return judging.verdict(self, as_is=as_is)

    def status(self) -> Status:
        """The state of everything."""
        return status_of(self)

    def with_backend(self) -> Stack:
        """Return this stack with a new backend, after the home was claimed."""
        return replace(self, backend=_BACKENDS[self.backend.name](self.settings, self.home))


def open_stack(flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Stack:
    """Find the stack that a command acts on. `flags`: settings given on its command line, which win.

    `environ`: the variables that choose settings; by default those of this process.
    """
    flags = flags or {}
    environ = dict(os.environ) if environ is None else environ
    home = Home(Path(environ.get(PREFIX + "HOME") or ROOT).resolve())
    up = home.up()
    settings = load(environ, flags, up.explicit if up else home.profile())
    name, reason = _choose(settings, home)
    return Stack(settings, home, _BACKENDS[name](settings, home), reason, flags)


def _choose(settings: StackSettings, home: Home) -> tuple[str, str]:
    chosen = settings.values.get("BACKEND")
    if chosen:
        if chosen not in _BACKENDS:
            raise StackError(f"unknown backend '{chosen}'; --backend and STACK_BACKEND take compose or local")
        if chosen == COMPOSE and (problem := _problem(settings)):
            raise StackError(f"backend compose: no Docker engine answers ({problem}); start it, or use --backend local")
        return chosen, "chosen by --backend or STACK_BACKEND"
    up, marker = home.up(), home.marker_or_none()
    for known, reason in (
        (up.backend if up else "", "the stack is up on it"),
        (marker.topics.backend if marker else "", "the topics of this home are on it"),
    ):
        if known == COMPOSE and (problem := _problem(settings)):
            raise StackError(
                f"the stack of {home.root} is on backend compose, and no Docker engine answers ({problem}); start it"
            )
        if known in _BACKENDS:
            return known, reason
    problem = _problem(settings)
    if not problem:
        return COMPOSE, "a container engine answers"
    return LOCAL, f"no container engine answers ({problem}); services run as processes of this machine"


def _problem(settings: StackSettings) -> str:
    """Say why no container engine can be used; empty when one can. Raises StackError for one of another machine."""
    host = settings.host.get("DOCKER_HOST", "")
    where = urlsplit(host).hostname if "://" in host and not host.startswith(("unix:", "fd:", "npipe:")) else None
    if where and not is_loopback(where) and not settings.values.get("ALLOW_REMOTE"):
        raise StackError(
            f"DOCKER_HOST={host} is not on this machine; unset it, use --backend local, or, if that is intended, "
            f"add --allow-remote (or set {PREFIX}ALLOW_REMOTE=yes)"
        )
    return engine_problem()
