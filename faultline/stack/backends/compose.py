"""Backend `compose`: each service a container of docker-compose.yaml, by Compose 1.29 or 2."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faultline.messages import say
from faultline.settings import ROOT, as_environment, read_env_file, read_environment
from faultline.stack import preflight
from faultline.stack.backend import (
    ABSENT,
    COMPOSE,
    EXITED,
    KILL,
    PAUSE,
    PAUSED,
    RESUME,
    RUNNING,
    START,
    STOP,
    last_lines,
)
from faultline.stack.backends.containers import Container, Docker
from faultline.stack.errors import StackError
from faultline.stack.home import Home
from faultline.stack.services import TABLE, Service, copies, mebibytes, profiles, services, table
from faultline.stack.settings import ENV_FILE, StackSettings
from faultline.stack.steps import Steps
from faultline.waiting import wait_until

INSIDE = "/faultline"
"""The project and its home, in a container."""
_INSIDE = {"JOBMANAGER_HOST": "jobmanager", "KAFKA_BOOTSTRAP": ""}
"""Settings that differ in a container, as in docker-compose.yaml."""
_SEEN = ("checkpoints", "output", "ledger", "store")
_UP_SECONDS, _KILL_SECONDS, _FREEZE_SECONDS = 300.0, 60.0, 30.0
_GAVE_UP = "unable to freeze"
_NOT_ROOT = 1000
_PERMISSIONS = "permissions"
"""The one-shot service that only containers need: it makes the mounted folders writable."""
_TOOLS = {"tools": "tools", "flink": "submit"}
"""Service that a command of an environment runs as."""
_IMAGES = {"tools": "spark", "flink": "flink"}
"""Image that has an environment."""
_EXPLAIN_LINES = 12
_ACTS = {
    START: ("up", "--detach", "--no-deps"), STOP: ("stop",), KILL: ("kill", "--signal", "KILL"), PAUSE: ("pause",),
    RESUME: ("unpause",),
}  # fmt: skip


class ComposeBackend:
    """Services as containers."""

    name = COMPOSE

    def __init__(self, settings: StackSettings, home: Home) -> None:
        self._settings, self._home = settings, home
        marker = home.marker_or_none()
        # A home in which no stack was started owns no project: that of `.env` is the plain stack of any clone.
        project = marker.project if marker else f"faultline-none-{_short(str(home.root))}"
        self._tag = _tag_in_use(project, settings.host) or self._own_tag()
        own = self._own_variables()
        host = self._settings.environment() | {"HOME": settings.host.get("HOME", "/")}
        # What this backend sets for Compose itself is no setting of a container.
        names = [name for name in as_environment(read_env_file(ENV_FILE)) if name not in own]
        self.docker = Docker(project, host | own, names)

    def _own_tag(self) -> str:
        """The tag of this clone's images: another clone may have other code, so each has its own."""
        return f"{self._settings.values['IMAGE_TAG']}-{_short(str(ROOT))}"

    def _own_variables(self) -> dict[str, str]:
        """The variables of docker-compose.yaml that are not the settings as they are."""
        user, group = os.getuid(), os.getgid()
        # Files that containers write belong to the caller. When root calls, they run as the image's user, not as root.
        identity = (user, group) if user else (_NOT_ROOT, _NOT_ROOT)
        return {
            "STACK_HOME": str(self._home.root),
            "STACK_UID": str(identity[0]),
            "STACK_GID": str(identity[1]),
            "STACK_IMAGE_TAG": self._tag,
            "COMPOSE_PROFILES": ",".join(sorted(profiles(self._settings.values))),
        }

    @property
    def _table(self) -> tuple[Service, ...]:
        return table(self._settings.values)

    @property
    def _services(self) -> tuple[Service, ...]:
        return services(self._settings.values)

    @property
    def bootstrap_inside(self) -> str:
        """`host:port` of each broker, with commas between them, for a command that runs beside them."""
        return self._settings.typed.changed(_INSIDE).bootstrap

    def prepare(self) -> None:
        """Build the images; unchanged layers come from the engine's cache."""
        if ":" in str(self._home.root):
            raise StackError(f"the path {self._home.root} contains ':', which Docker does not mount; use another")
        if self._settings.values.get("STORE_ENDPOINT"):
            raise StackError(
                "containers reach no other object store than the stack's own: leave STACK_STORE_ENDPOINT out, or use "
                "--backend local"
            )
        if not self.is_prepared():
            preflight.check_disk(ROOT, preflight.IMAGES_MIB)
            say("building the images; the first time fetches all that they need ...")
        subprocess.run([str(ROOT / "docker" / "collect_certs.sh")], check=False)
        # One name for all stacks, or each would replace the others' images.
        if not self.docker.build(read_env_file(ENV_FILE)["COMPOSE_PROJECT_NAME"]):
            raise StackError("the images could not be built; the end of the build's log is above")

    def _image(self, target: str) -> str:
        """The name of an image, as in docker-compose.yaml."""
        return f"localhost/faultline/{target}:{self._tag}"

    def fetch(self) -> None:
        """Prepare: the images have everything."""
        self.prepare()

    def is_prepared(self) -> bool:
        """Return whether every image exists; images may be older than the code."""
        images = {self._image(row.image) for row in self._services}
        # It fails when one of them is missing.
        return bool(self.docker.ask("image", "inspect", "--format", "{{.Id}}", *images))

    # The stack as a whole

    def check_capacity(self) -> None:
        """Memory and ports only when nothing runs: what runs has its own."""
        if not self._running():
            preflight.check_memory(mebibytes(self._settings.values))
            published = [row.published for row in self._services if row.published]
            preflight.check_ports(self._settings.values["BIND_ADDRESS"], published, self._settings.ports())
        preflight.check_disk(self._home.root, preflight.RUN_MIB)

    def _running(self) -> set[str]:
        """The services of this stack that have not ended; a home without a marker has none, whoever has its project."""
        if self._home.marker_or_none() is None:
            return set()
        return {name for name, found in self.docker.containers().items() if not found.ended}

    def up(self) -> None:
        """Start what does not run. Compose knows the order, and waits for each dependency."""
        before = self._running()
        try:
            self._start_all(before, Steps())
        except BaseException:
            say("the stack did not come up; stopping what was started")
            started = [row.name for row in reversed(self._table) if row.name not in before]
            if started:
                # Without names it would stop all.
                self.docker.quietly("stop", *started)
            raise

    def _start_all(self, running: set[str], steps: Steps) -> None:
        if running:
            # A service that runs must not be replaced, even when its settings have changed.
            missing = [row for row in self._table if row.name not in running]
            for row in missing:
                self._await_needs(row)
                if not self.docker.quietly("up", "--detach", "--no-deps", "--no-build", row.name):
                    raise StackError(f"service {row.name} could not be started; the reasons are above")
        else:
            self._start_store(steps)
            if not self.docker.quietly("up", "--detach", seconds=_UP_SECONDS):
                raise StackError(f"the services could not be started; the reasons are above\n{self.explain()}")
        wait_until(
            lambda: self._is_settled(steps),
            "every service and the Flink job",
            seconds=_UP_SECONDS,
            explain=self.explain,
        )
        if self._unready():
            raise StackError(f"a service ended during the start; its last lines:\n{self.explain()}")

    def _start_store(self, steps: Steps) -> None:
        """Start the object store, if there is one, and make its bucket: engines need both from their start on.

        Compose knows of no dependency on services of a profile.
        """
        bucket = next((row for row in self._table if row.of_store and row.one_shot), None)
        if bucket is None:
            return
        # With the services that it depends on.
        if not self.docker.quietly("up", "--detach", bucket.name, seconds=_UP_SECONDS):
            raise StackError(f"the object store could not be started; the reasons are above\n{self.explain()}")
        wait_until(lambda: self.state(bucket) == EXITED, "the bucket", seconds=_UP_SECONDS, explain=self.explain)
        if not _is_ready(bucket, self.docker.containers().get(bucket.name)):
            raise StackError(f"the object store takes no objects: {self.log(bucket, 1)}")
        self._tell(steps)

    def _await_needs(self, row: Service) -> None:
        for need in row.needs:
            for each in copies(need, self._settings.values):
                answers = functools.partial(self.answers, each)
                wait_until(answers, f"{each.name} to answer", seconds=_UP_SECONDS, explain=self.explain)

    def _unready(self, *, ended: bool = False) -> list[Service]:
        """Services that are not ready; with `ended`, those of them that ended."""
        containers = self.docker.containers()
        return [
            row
            for row in self._table
            if not _is_ready(row, containers.get(row.name))
            and (not ended or (row.name in containers and containers[row.name].ended))
        ]

    def _tell(self, steps: Steps) -> None:
        containers = self.docker.containers()
        for row in self._table:
            if _is_ready(row, containers.get(row.name)):
                steps.done(f"{row.name} is done" if row.one_shot else f"{row.name} is healthy")

    def _is_settled(self, steps: Steps) -> bool:
        settled = not self._unready() or bool(self._unready(ended=True))
        # After it: what made the stack settled is among the steps.
        self._tell(steps)
        return settled

    def down(self, *, wipe: bool) -> list[Path]:
        """Remove the containers; with `wipe` also the volumes and the folders of the stack."""
        for row in self._services:
            # A frozen process does not see SIGTERM.
            if self.state(row) == PAUSED:
                self.resume(row)
        # Compose knows of no dependency on services of a profile: without its workers, or the store, the driver would
        # wait long for the end of its batch.
        profiled = {row.name for row in self._services if row.profiles}
        early = [row.name for row in self._services if profiled & set(row.needs)]
        if "spark" in early:
            self.docker.quietly("stop", "spark")
        if early:
            self.docker.quietly("stop", *early)
        # An earlier start may have had more services, and their volumes.
        profiles = {"COMPOSE_PROFILES": ",".join(sorted({each for row in TABLE for each in row.profiles}))}
        words = ("down", "--remove-orphans", *(["--volumes"] if wipe else []))
        if not self.docker.quietly(*words, more=profiles):
            # The page, or a person, may have started a command in a container of its own, which holds the network.
            say("stopping once more, also what may have started meanwhile ...")
            if not self.docker.quietly(*words, more=profiles):
                raise StackError("the stack could not be stopped; the reasons are above")
        return self._wipe() if wipe else []

    def _wipe(self) -> list[Path]:
        try:
            return self._home.wipe()
        except PermissionError:
            # `docker-compose up` without the scripts writes as the user in .env, who may be another.
            marked = self._home.marked()
            folders = [f"{INSIDE}/{folder.relative_to(self._home.root)}" for folder in marked]
            self.docker.one_off(_PERMISSIONS, ["docker/empty.sh", *folders], capture=False)
            self._home.wipe()
            return marked

    # One service

    def start(self, service: Service, arguments: Sequence[str]) -> None:
        """Start a service. Settings and arguments are part of the container: other settings make a new container."""
        words = " ".join("'" + argument.replace("'", "'\\''").replace("$", "$$") + "'" for argument in arguments)
        more = {_arguments_of(service): words}
        if not self.docker.quietly("up", "--detach", "--no-deps", "--no-build", service.name, more=more):
            raise StackError(f"service {service.name} did not start; see scripts/logs.sh {service.name}")

    def stop(self, service: Service) -> None:
        """Let Compose stop it: SIGTERM, and SIGKILL after the grace period in docker-compose.yaml."""
        state = self.state(service)
        if state == PAUSED:
            self.resume(service)
        if state in (RUNNING, PAUSED) and not self.docker.quietly("stop", service.name):
            raise StackError(f"service {service.name} could not be stopped; the reasons are above")

    def kill(self, service: Service) -> None:
        """SIGKILL to process 1, and with it to every process of its namespace."""
        self.docker.act("kill", "--signal", "KILL", self._container(service).name)
        wait_until(lambda: self.state(service) == EXITED, f"the end of {service.name}", seconds=_KILL_SECONDS)

    def pause(self, service: Service) -> None:
        """Freeze the container.

        With cgroup v1 the engine gives up after a moment on a busy machine, and leaves it to its caller to ask again
        (https://github.com/opencontainers/runc/pull/4388).
        """
        container, wrong = self._container(service).name, ""

        def is_frozen() -> bool:
            nonlocal wrong
            wrong = self.docker.attempt("pause", container)
            if wrong and _GAVE_UP not in wrong:
                raise StackError(wrong)
            return not wrong

        wait_until(is_frozen, f"{service.name} to freeze", seconds=_FREEZE_SECONDS, explain=lambda: wrong)

    def resume(self, service: Service) -> None:
        """Resume the container."""
        self.docker.act("unpause", self._container(service).name)

    def state(self, service: Service) -> str:
        """Query the engine."""
        return _state(self.docker.containers().get(service.name))

    def states(self) -> Mapping[str, str]:
        """Query the engine once."""
        containers = self.docker.containers()
        return {row.name: _state(containers.get(row.name)) for row in self._services}

    def answers(self, service: Service) -> bool:
        """Docker's own proxy takes connections to a published port before the service does: its health counts."""
        container = self.docker.containers().get(service.name)
        return container is not None and (container.healthy if service.port else container.state == "running")

    def log(self, service: Service, lines: int) -> str:
        """The last lines of its log."""
        container = self.docker.containers().get(service.name)
        if container is None:
            return ""
        done = subprocess.run(
            ["docker", "logs", "--tail", str(lines), container.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        return last_lines(done.stdout, lines)

    def memories(self) -> Mapping[str, int]:
        """Resident bytes of their processes; the page cache, which `docker stats` counts, is not among them."""
        containers = [each for each in self.docker.containers().values() if not each.ended]

        def resident(container: Container) -> int:
            listed = self.docker.ask("top", container.name, "-eo", "pid,rss").splitlines()[1:]
            return sum(int(line.split()[1]) for line in listed) * 1024

        with ThreadPoolExecutor() as side:
            return dict(zip((each.service for each in containers), side.map(resident, containers)))

    def settings_of(self, service: Service) -> Mapping[str, str]:
        """The settings in the environment of its container."""
        container = self.docker.containers().get(service.name)
        if container is None:
            return {}
        listed = self.docker.field(container.name, '{{range .Config.Env}}{{printf "%s\\n" .}}{{end}}')
        return read_environment(dict(line.split("=", 1) for line in listed.splitlines() if "=" in line))

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
        """Run a command in the container of a service, or in a new container when the service does not run."""
        done = self._beside(service, command, capture=capture, quiet=quiet, piped=piped)
        if done is None:
            done = self.docker.one_off(service.name, command, capture=capture, quiet=quiet, piped=piped)
        if check and done.returncode:
            raise StackError("", done.returncode)
        return done

    def _beside(
        self, service: Service, command: Sequence[str], *, capture: bool, quiet: bool = False, piped: bool = False
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command in the container of a service; None when the service does not run."""
        container = self.docker.containers().get(service.name)
        if container is None or container.state != "running":
            return None
        # The container has the settings of its start.
        chosen = as_environment(self._settings.of_commands)
        return self.docker.execute(container.name, command, variables=chosen, capture=capture, quiet=quiet, piped=piped)

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
        """Run a command in a new container, which also sees the given files and folders of the host.

        With `beside`, in the container of that service if it runs.
        """
        if beside is not None and (done := self._beside(beside, command, capture=capture)) is not None:
            return done
        if not self.is_prepared():
            self.prepare()
        for name in _SEEN:
            # Docker would create a missing one as root, and `up` could not mark it.
            if not (folder := self._home.root / name).exists():
                self._share(folder)
        mounts = [f"{self._share(folder)}:{folder.resolve()}:z" for folder in writable]
        mounts += [f"{path}:{path}:ro" for path in map(self._mounted, readable) if path]
        return self.docker.one_off(_TOOLS[environment], command, mounts=mounts, capture=capture)

    def help_of(self, module: Sequence[str], environment: str) -> str:
        """Ask the module in a container without mounts: Compose would create the mounted folders, as root."""
        image = self._image(_IMAGES[environment])
        run = ("run", "--rm", "--pull", "never", "--network", "none", "--read-only", "--tmpfs", "/tmp", image)
        return self.docker.ask(*run, "python", "-m", *module, "--help")

    def _mounted(self, path: Path) -> str:
        """Return a path that has to be mounted; empty for one that containers see anyway."""
        inside = self.path_inside(path)
        return "" if inside.startswith(f"{INSIDE}/") else inside

    def _share(self, folder: Path) -> str:
        """Make a folder that the tools see; they run as the stack's user, who must be able to write there."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.getuid() == 0:
                os.chown(folder, _NOT_ROOT, _NOT_ROOT)
        except OSError as error:
            raise StackError(f"folder {folder} cannot be made ({error.strerror}); choose another") from None
        return str(folder.resolve())

    def typed(self, service: Service, command: Sequence[str]) -> str:
        """With Compose, in the container of the service; a user whom the image does not know needs its entry point."""
        entry = [] if os.getuid() in (0, _NOT_ROOT) else ["docker/run.sh"]
        settings = (f"--env={name}={value}" for name, value in self._settings.of_this_call.items())
        return self.docker.typed("exec", *settings, service.name, *entry, *command)

    def typed_act(self, service: Service, act: str, arguments: Sequence[str] = ()) -> str:
        """With Compose; docker-compose.yaml takes the flags of a service from a variable."""
        typed = self.docker.typed(*_ACTS[act], service.name)
        if not arguments:
            return typed
        return f"{_arguments_of(service)}={shlex.quote(shlex.join(arguments))} {typed}"

    def path_inside(self, path: Path) -> str:
        """Return the path in a container of a file of the home; a shared file outside it has the same path in both."""
        absolute = Path(os.path.normpath(Path.cwd() / path))
        for name in _SEEN:
            folder = self._home.root / name
            if absolute == folder or folder in absolute.parents:
                return f"{INSIDE}/{absolute.relative_to(self._home.root)}"
        return str(absolute)

    def path_outside(self, path: str) -> str:
        """Return the path on the host of a file that containers see."""
        return str(self._home.root) + path[len(INSIDE) :] if path.startswith(f"{INSIDE}/") else path

    def explain(self) -> str:
        """The last lines of each service that is not ready."""
        parts = []
        for row in self._unready():
            # Show only the causes of a stack trace.
            words = [line for line in self.log(row, 60).splitlines() if not line.lstrip().startswith(("at ", "... "))]
            if words:
                parts.append("\n".join([f"-- {row.name} ({self.state(row)}):", *words[-_EXPLAIN_LINES:]]))
        return "\n".join(parts)

    def _container(self, service: Service) -> Container:
        container = self.docker.containers().get(service.name)
        if container is None or container.ended:
            raise StackError(f"service {service.name} does not run; scripts/status.sh shows all")
        return container


def _arguments_of(service: Service) -> str:
    """The variable in docker-compose.yaml for the flags of a service."""
    return f"{service.name.upper()}_ARGUMENTS"


def _short(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:8]


def _tag_in_use(project: str, host: Mapping[str, str]) -> str:
    """Tag of the images that a project's containers run; empty when it has none."""
    docker = Docker(project, host)
    kafka = docker.containers().get(TABLE[0].name)
    # As it was named at the start: `docker ps` shows the id of an image whose name another one has got since.
    return docker.field(kafka.name, "{{.Config.Image}}").rpartition(":")[2] if kafka else ""


def _is_ready(row: Service, container: object) -> bool:
    if not isinstance(container, Container):
        return False
    if row.one_shot:
        return container.succeeded
    return container.healthy or (row.may_finish and container.succeeded)


def _state(container: Container | None) -> str:
    if container is None:
        return ABSENT
    return {"running": RUNNING, "restarting": RUNNING, "paused": PAUSED}.get(container.state, EXITED)
