"""Calls to Docker and Compose: find containers by their labels, run commands in them.

Containers are found by the labels that Compose gives them: looking at one needs no Compose, which is slow.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from faultline.messages import listening, say
from faultline.settings import ROOT, read_env_file
from faultline.stack.children import is_beside, run_child, waiting_for
from faultline.stack.errors import StackError

_PROGRESS_SECONDS = 10.0
_ANSWER_SECONDS = 10.0
_STEP = re.compile(r"^(Step \d|#\d+ \[|(Creating|Starting|Stopping|Removing) | *Container )")
_NOISE = re.compile(r"^((Creating|Starting|Recreating|Stopping|Removing) .*(\.\.\.|done)|Encountered errors.*|)$")
_RUN_NOISE = re.compile(
    r"^\s*(Creating (\S+_run|network|volume) .*|Container .*-run-.*|(Network|Volume) \S+ +Creat(ing|ed) *)$"
)
_SHOWN_LINES = 30
_NOT_FOUND = 127
"""A shell's exit code for a program that is not there."""
_NO_DOCKER = "docker is not on PATH"


def engine_problem() -> str:
    """Say why this user can use no container engine; empty when one answers."""
    if shutil.which("docker") is None:
        return _NO_DOCKER
    try:
        done = subprocess.run(["docker", "info"], capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        return f"docker info says nothing within {_ANSWER_SECONDS:g} s"
    return (done.stderr.strip().splitlines() or ["docker info failed"])[-1] if done.returncode else ""


def on_terminal() -> bool:
    """Return whether all three streams are a terminal; a tty would mix results on stdout with stderr."""
    return all(os.isatty(descriptor) for descriptor in (0, 1, 2))


@dataclass(frozen=True)
class Container:
    """State of one container. `status` as Docker shows it: `Up 5 seconds (healthy)`, `Exited (0) 2 hours ago`."""

    name: str
    service: str
    state: str
    status: str

    @property
    def healthy(self) -> bool:
        """True when its health check succeeds."""
        return self.state == "running" and self.status.endswith("(healthy)")

    @property
    def succeeded(self) -> bool:
        """True when it ended with exit code 0."""
        return self.state == "exited" and self.status.startswith("Exited (0)")

    @property
    def ended(self) -> bool:
        """True when it ended, for any reason, or never began: Compose 2 creates all containers before it starts one."""
        return self.state in ("created", "exited", "dead")


class Docker:
    """Docker and Compose for one project.

    `environ`: what docker-compose.yaml reads its variables from; `names`: those that every container gets.
    """

    def __init__(self, project: str, environ: Mapping[str, str], names: Sequence[str] = ()) -> None:
        self.project = project
        self._environ = {**environ, "COMPOSE_PROJECT_NAME": project}
        self._names = names
        self._program: list[str] | None = None

    def program(self) -> list[str]:
        """Compose itself: the plugin, or the program of version 1."""
        if self._program is None:
            plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
            if plugin.returncode == 0:
                self._program = ["docker", "compose"]
            elif shutil.which("docker-compose"):
                self._program = ["docker-compose"]
            else:
                raise StackError(
                    "neither 'docker compose' nor 'docker-compose' is installed; install one, or use --backend local"
                )
        return self._program

    def compose(self) -> list[str]:
        """Compose for this project's file, from any folder."""
        return [*self.program(), "--project-directory", str(ROOT), "--file", str(ROOT / "docker-compose.yaml")]

    def typed(self, *words: str) -> str:
        """Return the line that a person types in the project's folder, where Compose finds its file.

        A project name that is not the one in `.env` has to be given.
        """
        default = read_env_file(ROOT / ".env")["COMPOSE_PROJECT_NAME"]
        project = [] if self.project == default else ["--project-name", self.project]
        return shlex.join([*self.program(), *project, *words])

    @contextlib.contextmanager
    def variables(self) -> Iterator[dict[str, str]]:
        """The variables of one call of Compose, with a file of names that takes the place of `.env` for containers."""
        with contextlib.ExitStack() as held:
            try:
                file = held.enter_context(tempfile.NamedTemporaryFile("w", suffix=".env"))
                file.write("".join(f"{name}\n" for name in self._names))
                file.flush()
                name = file.name
            except OSError:
                # On a full disk a stack can still be stopped: then no container reads the file.
                name = str(ROOT / ".env")
            yield {**self._environ, "STACK_ENV_FILE": name}

    def quietly(self, *arguments: str, seconds: float | None = None, more: Mapping[str, str] | None = None) -> bool:
        """Run Compose, show its progress, and its output only when it fails. Returns whether it succeeded."""
        with self.variables() as environ:
            return _quietly([*self.compose(), *arguments], {**environ, **(more or {})}, seconds)

    def build(self, project: str) -> bool:
        """Build the images of the services that are part of the stack, and return whether that succeeded.

        `project`: Compose 2 writes it into an image. BuildKit builds all images side by side; Compose 2.26 alone builds
        an image after those of the services that its own service depends on.
        """
        more = {"COMPOSE_PROJECT_NAME": project}
        has_buildx = self.ask("buildx", "version")
        if not has_buildx or self.program() == ["docker-compose"] or "Podman" in self.ask("version"):
            # The config of Compose 1.29 has all profiles; Podman has no BuildKit.
            # Without buildx Compose has to be told to use the classic builder.
            classic = {} if has_buildx else {"DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}
            return self.quietly("build", more={**more, **classic})
        with self.variables() as names, tempfile.NamedTemporaryFile(suffix=".yaml") as file:
            environ = {**names, **more}
            if subprocess.run([*self.compose(), "config"], stdout=file, check=False, env=environ).returncode:
                return False
            return _quietly(["docker", "buildx", "bake", "--load", "--progress", "plain", "--file", file.name], environ)

    def ask(self, *arguments: str) -> str:
        """Run Docker and return what it prints; empty when it fails."""
        done = self._docker(*arguments)
        return done.stdout.strip() if done.returncode == 0 else ""

    def act(self, *arguments: str) -> None:
        """Run Docker. Raises StackError with its last line when it fails."""
        wrong = self.attempt(*arguments)
        if wrong:
            raise StackError(wrong)

    def attempt(self, *arguments: str) -> str:
        """Run Docker; returns its last line when it fails, and nothing otherwise."""
        done = self._docker(*arguments)
        return (done.stderr.strip().splitlines() or [f"docker {arguments[0]} failed"])[-1] if done.returncode else ""

    def _docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["docker", *arguments]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, check=False, env=self._environ, start_new_session=is_beside()
            )
        except FileNotFoundError:
            # A stack of containers is opened, and says what it has, where no Docker is installed.
            return subprocess.CompletedProcess(command, _NOT_FOUND, "", f"{_NO_DOCKER}; install Docker")

    def containers(self) -> dict[str, Container]:
        """The containers of this project, by service."""
        printed = self.ask(
            "ps", "--all", "--no-trunc",
            "--filter", f"label=com.docker.compose.project={self.project}",
            "--filter", "label=com.docker.compose.oneoff=False",
            "--format", '{{.ID}}\t{{.Label "com.docker.compose.service"}}\t{{.State}}\t{{.Status}}',
        )  # fmt: skip
        found = [Container(*line.split("\t")) for line in printed.splitlines()]
        # Newest first: a container that is being replaced does not count.
        return {container.service: container for container in reversed(found)}

    def field(self, container: str, template: str) -> str:
        """One field of `docker inspect`."""
        return self.ask("inspect", "--format", template, container)

    def one_off(
        self,
        service: str,
        command: Sequence[str],
        *,
        mounts: Sequence[str] = (),
        capture: bool,
        quiet: bool = False,
        piped: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a new container, removed when the command ends."""
        volumes = [word for mount in mounts for word in ("--volume", mount)]
        start = [*self.compose(), "run", "--rm", "--no-deps", *volumes]
        with self.variables() as environ:
            if on_terminal() and not capture:
                return run_child([*start, service, *command], environ)
            process = subprocess.Popen(
                [*start, "-T", service, *command], stdin=None if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else None, stderr=subprocess.PIPE, text=True, env=environ,
                start_new_session=listening(),
            )  # fmt: skip
            # On the command's stderr Compose announces the container; version 1 also prints the exit code at the end.
            said: list[str] = []
            write = said.append if listening() else sys.stderr.write
            reader = threading.Thread(target=_copy_without_noise, args=(process.stderr, write, quiet))
            reader.start()
            with waiting_for(process):
                output = process.stdout.read() if process.stdout else ""
                code = process.wait()
            reader.join()
        if said:
            say("".join(said).rstrip())
        return subprocess.CompletedProcess(process.args, code, output)

    def execute(
        self,
        container: str,
        command: Sequence[str],
        *,
        variables: Mapping[str, str],
        capture: bool,
        quiet: bool = False,
        piped: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a running container; it ends with this program.

        Without a terminal its stdin is a pipe that stays empty, and it ends when the pipe closes: `docker exec` alone
        would leave it running after a Ctrl-C. With `piped` it reads this program's stdin, to its end. `variables` are
        set for the command, besides those of the container.
        """
        start = ["docker", "exec", "--interactive", *(f"--env={name}={value}" for name, value in variables.items())]
        if piped:
            words = [*start, container, "docker/run.sh", *command]
            return run_child(words, self._environ, stdout=subprocess.PIPE if capture else None, quiet=quiet)
        if on_terminal() and not capture:
            words = [*start, "--tty", container, "docker/run.sh", *command]
            return run_child(words, self._environ)
        words = [*start, container, "docker/run.sh", "--tied", *command]
        stdout = subprocess.PIPE if capture else None
        return run_child(words, self._environ, stdin=subprocess.PIPE, stdout=stdout, quiet=quiet)


def _quietly(command: list[str], environ: Mapping[str, str], seconds: float | None = None) -> bool:
    """Run a command, show its progress, and its output only when it fails. Returns whether it succeeded."""
    with _progress() as log:
        try:
            done = subprocess.run(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False, env=environ, timeout=seconds,
                start_new_session=is_beside(), cwd=ROOT,
            )  # fmt: skip
            succeeded = done.returncode == 0
        except subprocess.TimeoutExpired:
            succeeded = False
        if not succeeded:
            log.seek(0)
            printed = [line for line in log.read().splitlines() if not _NOISE.match(line)]
            say("\n".join(printed[-_SHOWN_LINES:]))
    return succeeded


def _copy_without_noise(stream: IO[str] | None, write: Callable[[str], object], quiet: bool) -> None:
    """Pass on a command's stderr, without the lines that Compose adds; none of it when `quiet`."""
    held: str | None = None
    for line in stream or ():
        if quiet:
            continue
        if held is not None:
            write(held)
        held = None if _RUN_NOISE.match(line.rstrip("\n")) else line
    if held is not None and not re.fullmatch(r"\d{1,3}\n?", held):
        write(held)
    sys.stderr.flush()


@contextlib.contextmanager
def _progress() -> Iterator[IO[str]]:
    """A log for a build or for Compose. While the block runs, print the log's newest step every 10 s."""
    done = threading.Event()

    def tell() -> None:
        seconds = 0.0
        while not done.wait(_PROGRESS_SECONDS):
            seconds += _PROGRESS_SECONDS
            steps = [line for line in Path(log.name).read_text("utf-8", "replace").splitlines() if _STEP.match(line)]
            say(f"   {seconds:.0f} s: {steps[-1][:100] if steps else ''}")

    with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield log
        finally:
            done.set()
            teller.join()
