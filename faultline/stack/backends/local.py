"""Backend `local`: the pinned artifacts as processes of this machine, each service under a keeper.

Nothing restarts by itself: a killed service stays down. SIGTERM goes to the main process only, since a JVM that gets it
together with its Python parent would end in the middle of a micro-batch; other signals go to all its processes.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import shlex
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from faultline import ports
from faultline.messages import say
from faultline.settings import ROOT
from faultline.stack import preflight
from faultline.stack.artifacts import ADDITIONS, Artifacts
from faultline.stack.backend import ABSENT, EXITED, KILL, LOCAL, PAUSE, PAUSED, RESUME, RUNNING, START, STOP, last_lines
from faultline.stack.children import STDERR, run_child
from faultline.stack.errors import StackError
from faultline.stack.home import Home
from faultline.stack.keeper import put_away
from faultline.stack.processes import KEEPER, Process, end, keep, of_stack, send
from faultline.stack.services import Service, copies, mebibytes, services, table
from faultline.stack.settings import StackSettings
from faultline.stack.steps import Steps
from faultline.waiting import TimedOut, wait_until

_START_SECONDS = 180.0
_FREEZE_SECONDS = 30.0
_EXPLAIN_LINES = 8
_SIGNALS = {STOP: "TERM", KILL: "KILL", PAUSE: "STOP", RESUME: "CONT"}


class LocalBackend:
    """Services as processes of this machine."""

    name = LOCAL

    def __init__(self, settings: StackSettings, home: Home) -> None:
        self._settings, self._home = settings, home
        self.artifacts = Artifacts(
            Path(settings.values["ARTIFACTS"]), self._python, self._find_java, settings.environment(),
            store=settings.typed.has_store, own_store=settings.typed.has_own_store,
        )  # fmt: skip
        self._run, self._logs = home.state / "run", home.state / "logs"
        self._java: Path | None = None

    @property
    def _services(self) -> tuple[Service, ...]:
        return services(self._settings.values)

    @property
    def bootstrap_inside(self) -> str:
        """`host:port` of each broker, with commas between them, for a command that runs beside them."""
        return self._settings.values["KAFKA_BOOTSTRAP"]

    def prepare(self) -> None:
        """Check the machine, then fetch what is missing."""
        if self._settings.values["METRICS"] != "0":
            raise StackError("Prometheus runs in a container: leave STACK_METRICS out, or use --backend compose")
        self.check_machine()
        if not self.artifacts.complete():
            preflight.check_disk(self.artifacts.folder, preflight.ARTIFACTS_MIB)
        self.artifacts.make_all()

    def fetch(self) -> None:
        """Prepare, and fetch what contributors and the notebook need, too."""
        self.prepare()
        for name in ADDITIONS:
            self.artifacts.add_to_tools(name)

    def is_prepared(self) -> bool:
        """Return whether all artifacts are there."""
        return self.artifacts.complete()

    def check_machine(self) -> None:
        """Raise StackError when Java or Python is missing, or a path cannot be used."""
        preflight.check_paths(
            {"the project": ROOT, "the artifacts": self.artifacts.folder, "the home": self._home.root}
        )
        self._find_java()
        self._python()

    def _python(self) -> Path:
        return preflight.find_python(self._settings.values["PYTHON_VERSION"], self._settings.host)

    def _find_java(self) -> Path:
        self._java = self._java or preflight.require_java(self._settings.values["JAVA_VERSION"], self._settings.host)
        return self._java

    def environment(self, kind: str) -> dict[str, str]:
        """Build the environment of a program of the tools or of Flink."""
        environ = self.plain_environment(kind)
        java = self._find_java()
        commands = [ROOT / "faultline" / "services" / "kafka" / "bin", ROOT / "flink_job" / "bin", java.parent]
        environ["PATH"] = os.pathsep.join([*map(str, commands), environ["PATH"]])
        environ["JAVA_HOME"] = str(java.resolve().parent.parent)
        return environ

    def plain_environment(self, kind: str) -> dict[str, str]:
        """Build the environment of a program that needs no Java."""
        environ = self._settings.environment()
        environ["PATH"] = os.pathsep.join(
            [str(self.artifacts.environment(kind) / "bin"), environ.get("PATH", os.defpath)]
        )
        # Java decodes file names by it; in an empty environment the default is ASCII only.
        environ.setdefault("LC_ALL", "C.UTF-8")
        return environ

    # The stack as a whole

    def check_capacity(self) -> None:
        """Memory and ports only when nothing runs: what runs has its own."""
        running = [row for row in self._services if self.state(row) in (RUNNING, PAUSED)]
        if not running:
            listens = [port for row in self._services for port in row.listens]
            preflight.check_memory(mebibytes(self._settings.values))
            preflight.check_ports(self._settings.values["BIND_ADDRESS"], listens, self._settings.ports())
        preflight.check_disk(self._home.root, preflight.RUN_MIB)

    def up(self) -> None:
        """Start every service that does not run, and the Flink job; an interrupted start stops what it started."""
        started: list[Service] = []
        steps = Steps()
        try:
            for row in table(self._settings.values):
                for need in row.needs:
                    for each in copies(need, self._settings.values):
                        self._await(each)
                        steps.done(f"{each.name} answers")
                if row.one_shot:
                    self._run_once(row)
                    steps.done(f"{row.name} is done")
                elif self.state(row) not in (RUNNING, PAUSED):
                    started.append(row)
                    self.start(row, ())
            self._require_well(started)
            steps.done("every service was started")
        except BaseException:
            say("the stack did not come up; stopping what was started")
            self._stop_in_turn(started)
            names = {f"{KEEPER}{row.name}" for row in started}
            # A keeper that has just begun has not started its program yet.
            end(lambda: [each for each in self._processes() if each.service in names], "their keepers")
            for row in reversed(started):
                self.kill(row)
            raise

    def _require_well(self, started: Sequence[Service]) -> None:
        ended = [row for row in started if self.state(row) == EXITED and not row.may_finish]
        if ended:
            raise StackError(f"{ended[0].name} ended during the start; its last lines:\n{self.explain()}")

    def _run_once(self, row: Service) -> None:
        done = self._command(_command(row), row.environment, stdout=STDERR)
        if done.returncode:
            raise StackError(f"{row.name} failed, see the lines above")

    def _await(self, row: Service) -> None:
        def answers_or_ended() -> bool:
            return self.answers(row) or self.state(row) in (EXITED, ABSENT)

        wait_until(answers_or_ended, f"{row.name} to answer", seconds=_START_SECONDS, explain=self.explain)
        if not self.answers(row):
            raise StackError(f"{row.name} ended during the start; its last lines:\n{self.explain()}")

    def down(self, *, wipe: bool) -> list[Path]:
        """Stop every service, then every other process of this stack."""
        self._stop_in_turn(self._services)
        end(self._processes, "the stack's processes")
        return self._home.wipe() if wipe else []

    def _stop_in_turn(self, rows: Sequence[Service]) -> None:
        """Stop services, the last one first; copies at once: a broker that ends alone waits for a majority."""
        for _, copies_of_one in itertools.groupby(reversed(rows), key=lambda row: row.family):
            self._stop(list(copies_of_one))

    # One service

    def start(self, service: Service, arguments: Sequence[str]) -> None:
        """Start a service under a keeper."""
        mark = self._home.require_marker().stack
        preflight.check_ports(self._settings.values["BIND_ADDRESS"], service.listens, self._settings.ports())
        for folder in (self._run, self._logs):
            folder.mkdir(parents=True, exist_ok=True)
        command = [*_command(service), *arguments]
        (self._run / f"{service.name}.settings.json").write_text(json.dumps(dict(self._settings.values)), "utf-8")
        log, record = self._logs / f"{service.name}.log", self._record(service)
        flags = ["--log", str(log), "--record", str(record)]
        keep([*flags, *command], self.environment(service.environment), mark, service.name, ROOT)

    def stop(self, service: Service) -> None:
        """SIGTERM to the main process; SIGKILL to all processes after its grace period."""
        self._stop([service])

    def _stop(self, rows: Sequence[Service]) -> None:
        """Stop services at once; copies of one have the same grace period."""
        for row in rows:
            if self.state(row) == PAUSED:
                self.resume(row)
        send([main for main in map(self._main, rows) if main is not None], signal.SIGTERM)
        names = ", ".join(row.name for row in rows)
        try:
            wait_until(lambda: not any(map(self._main, rows)), f"{names} to end", seconds=rows[0].grace_seconds)
        except TimedOut:
            for row in filter(self._main, rows):
                say(f"{row.name} did not end within {row.grace_seconds:g} s of SIGTERM; it gets SIGKILL")
        for row in rows:
            end(functools.partial(self._of, row), row.name)

    def kill(self, service: Service) -> None:
        """SIGKILL to all processes of a service."""
        end(lambda: self._of(service), service.name)

    def pause(self, service: Service) -> None:
        """SIGSTOP to all processes of a service; the system stops one in a system call only after that call."""
        send(self._of(service), signal.SIGSTOP)
        wait_until(lambda: self.state(service) != RUNNING, f"{service.name} to stand still", seconds=_FREEZE_SECONDS)

    def resume(self, service: Service) -> None:
        """SIGCONT to all processes of a service."""
        send(self._of(service), signal.SIGCONT)

    def state(self, service: Service) -> str:
        """Query the system; the keeper's record only says whether it ever ran."""
        return self._state(service, self._of(service))

    def _state(self, service: Service, alive: Sequence[Process]) -> str:
        main = self._main_of(service, alive)
        if main is None:
            return EXITED if self._record(service).exists() else ABSENT
        return PAUSED if main.stopped else RUNNING

    def states(self) -> Mapping[str, str]:
        """Look at the system's processes once."""
        alive = self._processes()
        return {
            row.name: self._state(row, [each for each in alive if each.service == row.name]) for row in self._services
        }

    def answers(self, service: Service) -> bool:
        """Return whether it says that it is well, or its port accepts connections; without a port, whether it runs."""
        if self.state(service) != RUNNING:
            return False
        port = service.port and self._settings.ports()[service.port]
        address = self._settings.values["BIND_ADDRESS"]
        if port and service.health:
            return ports.says_ok(address, port, service.health)
        return not port or ports.answers(address, port)

    def log(self, service: Service, lines: int) -> str:
        """The last lines of its log, also of the part that its keeper has put away."""
        log = self._logs / f"{service.name}.log"
        text = _text(log)
        if text.count("\n") < lines:
            text = _text(put_away(log)) + text
        return last_lines(text, lines)

    def memories(self) -> Mapping[str, int]:
        """Resident bytes of the processes of every service."""
        resident: Counter[str] = Counter()
        for process in self._processes():
            resident[process.service] += process.resident_bytes
        return resident

    def settings_of(self, service: Service) -> Mapping[str, str]:
        """The settings that a service was started with last."""
        try:
            found = json.loads((self._run / f"{service.name}.settings.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in found.items()}

    def execute(
        self,
        service: Service,
        command: Sequence[str],
        *,
        capture: bool = False,
        check: bool = True,
        quiet: bool = False,
        piped: bool = False,  # noqa: ARG002  # every command reads this program's stdin
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the environment of a service."""
        done = self._command(command, service.environment, stdout=subprocess.PIPE if capture else None, quiet=quiet)
        if check and done.returncode:
            raise StackError("", done.returncode)
        return done

    def tool(
        self,
        command: Sequence[str],
        *,
        environment: str = "tools",
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),  # noqa: ARG002  # every file is seen
        capture: bool = False,
        beside: Service | None = None,  # noqa: ARG002  # there are no containers
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of an environment."""
        for folder in writable:
            folder.mkdir(parents=True, exist_ok=True)
        if not self.artifacts.usable():
            self.prepare()
        return self._command(command, environment, stdout=subprocess.PIPE if capture else None)

    def help_of(self, module: Sequence[str], environment: str) -> str:
        """Ask the module in this environment."""
        return self._command(["python", "-m", *module, "--help"], environment, stdout=subprocess.PIPE).stdout

    def _command(
        self, command: Sequence[str], kind: str, *, stdout: int | None, quiet: bool = False
    ) -> subprocess.CompletedProcess[str]:
        try:
            return run_child(command, self.environment(kind), folder=ROOT, stdout=stdout, quiet=quiet)
        except OSError as error:
            raise StackError(f"{command[0]} cannot be run: {error.strerror}") from None

    def typed(self, service: Service, command: Sequence[str]) -> str:
        """Through scripts/exec.sh, which sets PATH and the settings."""
        settings = (f"{name}={shlex.quote(value)}" for name, value in self._settings.of_this_call.items())
        return " ".join([*settings, shlex.join(["scripts/exec.sh", service.name, *command])])

    def typed_act(self, service: Service, act: str, arguments: Sequence[str] = ()) -> str:
        """A signal to its processes; the service's own script for a start. Empty when there is no process."""
        if act == START:
            return shlex.join([*service.command, *arguments])
        main = self._main(service)
        pids = [process.pid for process in self._of(service)] if act != STOP else [main.pid] if main else []
        return " ".join(["kill", f"-{_SIGNALS[act]}", *map(str, pids)]) if pids else ""

    def path_inside(self, path: Path) -> str:
        """Services see the files of the host."""
        return str(path.resolve())

    def path_outside(self, path: str) -> str:
        """Services see the files of the host."""
        return path

    def explain(self) -> str:
        """The last lines of each service that has ended."""
        parts = []
        for row in self._services:
            state = self.state(row)
            if state != RUNNING and (words := self.log(row, _EXPLAIN_LINES)):
                parts.append(f"-- {row.name} ({state}):\n{words}")
        return "\n".join(parts)

    # Processes

    def _processes(self) -> list[Process]:
        marker = self._home.marker()
        return of_stack(marker.stack) if marker else []

    def _of(self, service: Service) -> list[Process]:
        return [process for process in self._processes() if process.service == service.name]

    def _main(self, service: Service) -> Process | None:
        return self._main_of(service, self._of(service))

    def _main_of(self, service: Service, alive: Sequence[Process]) -> Process | None:
        """The process that the keeper started; when its record is lost, the oldest one."""
        try:
            pid = json.loads(self._record(service).read_text(encoding="utf-8"))["pid"]
        except (OSError, ValueError, KeyError):
            return alive[0] if alive else None
        # A pid without our mark belongs to another program.
        return next((process for process in alive if process.pid == pid), None)

    def _record(self, service: Service) -> Path:
        return self._run / f"{service.name}.json"


def _text(file: Path) -> str:
    """Return the content of a file; nothing when the file is not there."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _command(row: Service) -> list[str]:
    script, *words = row.command
    return [str(ROOT / script), *words]
