"""The stack that is broken: the steps that are done to it, and the questions that the matrix asks it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from flink_job.rest import FlinkError, working_taskmanager

from faultline.command import CommandError
from faultline.copies import name_of, setting_of
from faultline.faults.repair import generator_runs, unheard
from faultline.faults.steps import STATUS, Step
from faultline.faults.timeline import CHECKPOINTS, FLINK, Timeline, last_samples
from faultline.formats.checkpoint import Checkpoint, of_newest_job
from faultline.formats.status import FlinkJob
from faultline.formats.verdict import Verdicts
from faultline.messages import heard
from faultline.settings import ROOT
from faultline.stack import backend
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.storage.batches import newest_batch
from faultline.storage.data import flink_checkpoints, spark_checkpoints, spark_outputs
from faultline.storage.location import Location
from faultline.waiting import wait_until

_WATCHER_SECONDS = 120
_POLL_SECONDS = 0.1
_ANSWER_SECONDS = 60
_CHECKPOINTS_SECONDS = 180
_ELECTED = "DefaultDispatcherRunner was granted leadership"
_SETTLE_SECONDS = 180
_LOG_LINES = 100_000
_SHOWN_LINES = 12
T = TypeVar("T")


class StepFailed(CommandError):
    """A step of a row did not do what the row says; the message has what it said."""


class Scene:
    """One stack, and the folder of one row's results."""

    def __init__(self, folder: Path, timeline: Timeline, stack: Stack) -> None:
        self.folder, self.timeline, self._stack = folder, timeline, stack
        self._watcher: subprocess.Popen[bytes] | None = None
        self._follower: subprocess.Popen[bytes] | None = None
        self._named: dict[str, str] = {}
        self.attempts = 0
        """Number of times that the row has begun to break something."""
        self.prepared = False
        """True when the steps before the fault have begun."""

    @property
    def stack(self) -> Stack:
        """The stack as it is now."""
        return self._stack.having({})

    @property
    def checkpoint_seconds(self) -> float:
        """Seconds from one checkpoint of the Flink job to the next."""
        return int(self.stack.settings.values["FLINK_CHECKPOINT_INTERVAL_MS"]) / 1000

    @property
    def spark(self) -> Location:
        """The synchronizer's checkpoint."""
        settings = self.stack.settings.typed
        return spark_checkpoints(settings) / settings.query()

    @property
    def notes(self) -> Path:
        """The folder for the settings of the synchronizer's run; beside it is the mark of a held batch."""
        settings = self.stack.settings.typed
        return settings.spark_notes / settings.query()

    @property
    def flink(self) -> Location:
        """The folder of Flink's checkpoints."""
        return flink_checkpoints(self.stack.settings.typed)

    @property
    def output(self) -> Location:
        """The folder that the synchronizer writes to."""
        settings = self.stack.settings.typed
        return spark_outputs(settings) / settings.query()

    def do(self, step: Step) -> None:
        """Do a step. Raises StepFailed when it fails, or when it should have been refused and was not."""
        if step.after:
            time.sleep(step.after)
        fill = self._filler(step.line)
        line = fill(step.line)
        self.timeline.command(line)
        code = 0
        with heard() as said:
            try:
                step.act(self.stack, fill)
            except CommandError as error:
                code = error.code
                said.extend(str(error).splitlines())
        words = "\n".join(said)
        if step.refused:
            if not code or step.refused not in words:
                raise StepFailed(f"{line}: must be refused with '{step.refused}', exit code {code}:\n{_tail(words)}")
            self.timeline.add("note", f"refused: {step.refused}")
        elif code:
            raise StepFailed(f"{line}: exit code {code}:\n{_tail(words)}")

    def ask(self, title: str, question: Callable[[Stack], T]) -> T:
        """Ask the stack, without showing what is said. Raises StepFailed with the title when it has no answer."""
        try:
            return unheard(lambda: question(self.stack))
        except StackError as error:
            raise StepFailed(f"{title}: exit code {error.code}:\n{_tail(str(error))}") from None

    def run(self, command: Sequence[str], *, environment: str = "tools", codes: tuple[int, ...] = (0,)) -> str:
        """Return what a program of the stack's tools prints. Raises StepFailed for another exit code."""

        def printed(stack: Stack) -> str:
            done = stack.backend.tool(command, environment=environment, writable=[self.folder], capture=True)
            if done.returncode not in codes:
                raise StackError("", done.returncode)
            return done.stdout

        return self.ask(" ".join(command), printed)

    def probe(self, module: str, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        """Return what a module of faultline/probes/ prints. Raises StepFailed for another exit code."""
        return self.run(["python", "-m", f"faultline.probes.{module}", *words], codes=codes)

    def inspect(self, path: str, *flags: str, environment: str = "tools") -> str:
        """Return what the inspector says of a checkpoint, problems or not. Raises StepFailed."""
        inside = path if "://" in path else self.stack.backend.path_inside(Path(path))
        command = ["python", "-m", "faultline.inspector", inside, "--no-lag", *flags]
        return self.run(command, environment=environment, codes=(0, 1, 2))

    def log(self, service: str, lines: int = _LOG_LINES) -> list[str]:
        """The last lines of a service's log."""
        stack = self.stack
        return stack.backend.log(stack.service(service), lines).splitlines()

    def filled(self, text: str) -> str:
        """Put what the stack knows into a text. Raises StepFailed when it names a checkpoint and there is none."""
        return self._filler(text)(text)

    def _filler(self, text: str) -> Callable[[str], str]:
        """Ask for each {name} of a text once; the result puts the answers into any text."""
        found = {f"{{{name}}}": answer(self) for name, answer in self.PLACEHOLDERS.items() if f"{{{name}}}" in text}

        def fill(other: str) -> str:
            for name, answer in found.items():
                other = other.replace(name, answer)
            return other

        return fill

    def _checkpoint(self, number: int) -> str:
        complete = self.complete_checkpoints()
        if not complete:
            raise StepFailed("the job has no complete checkpoint")
        return self.stack.backend.path_outside(complete[number].path)

    def _newest_commit(self) -> str:
        commits = self.spark / "commits"
        return str(commits / str(newest_batch(commits)))

    def _one_more(self) -> str:
        """Checkpoints that the job has completed once the one is complete that had begun at its kept status."""
        status = FlinkJob.from_json(json.loads((self.folder / STATUS).read_text(encoding="utf-8")))
        return str(status.checkpoints_completed + 1)

    PLACEHOLDERS: ClassVar[Mapping[str, Callable[[Scene], str]]] = {
        "newest": lambda scene: scene._checkpoint(-1),
        "oldest": lambda scene: scene._checkpoint(0),
        "flink": lambda scene: str(scene.flink),
        "spark": lambda scene: str(scene.spark),
        "newest_commit": lambda scene: scene._newest_commit(),
        "one_more": lambda scene: scene._one_more(),
        "output": lambda scene: str(scene.output),
        "notes": lambda scene: str(scene.notes),
        "results": lambda scene: str(scene.folder),
        "broker": lambda scene: str(scene.stack.home.state / "kafka"),
        "bootstrap": lambda scene: scene.stack.backend.bootstrap_inside,
        "kafka_port": lambda scene: scene.stack.settings.values["KAFKA_PORT"],
        "rpc_port": lambda scene: scene.stack.settings.values["FLINK_RPC_PORT"],
        "working": lambda scene: scene._once("working", scene._working),
        "leading": lambda scene: scene._once("leading", scene._leading),
        "controlling": lambda scene: scene.controlling(),
        "inner_ports": lambda scene: scene._inner_ports(),
    }
    """Functions that return the text for each {name} in a line; see `faultline.faults.steps`."""

    def forget(self) -> None:
        """Ask again who works and who leads: the next attempt may meet another one."""
        self._named.clear()

    def _once(self, name: str, ask: Callable[[], str]) -> str:
        """Ask once in an attempt: the one that was broken is the one to repair."""
        if name not in self._named:
            self._named[name] = ask()
        return self._named[name]

    def _working(self) -> str:
        try:
            return working_taskmanager(self.stack.settings.typed.flink_rest, self.job()["job_id"])
        except FlinkError as error:
            raise StepFailed(str(error)) from None

    def _leading(self) -> str:
        """The JobManager that was elected last, by the logs, whose lines begin with their time."""
        elected = [
            (line[:23], row.name)
            for row in self.stack.copies("jobmanager")
            for line in self.log(row.name)
            if _ELECTED in line
        ]
        if not elected:
            raise StepFailed("no JobManager says in its log that it leads")
        return max(elected)[1]

    def controlling(self) -> str:
        """The broker that was the active controller when this attempt first asked."""
        return self._once("controlling", lambda: name_of("kafka", int(self.probe("leaders", "--controller"))))

    def _inner_ports(self) -> str:
        """The ports on which that broker listens for other brokers, and those on which they do."""
        values, broker = self.stack.settings.values, self.controlling()
        ports = {
            row.name: ",".join(
                values[setting_of("KAFKA", each, row.copy)] for each in ("CONTAINER_PORT", "CONTROLLER_PORT")
            )
            for row in self.stack.copies("kafka")
        }
        return f"{ports.pop(broker)} {','.join(ports.values())}"

    def generate(self, flags: str) -> None:
        """Start the generator with these flags: one that runs may have others. Raises StepFailed."""
        self.stop_generator()
        self.ask("start the generator", lambda stack: stack.start("generator", shlex.split(flags)))

    def stop_generator(self) -> None:
        """Stop the generator if it runs. Raises StepFailed."""
        if generator_runs(self.stack):
            self.ask("stop the generator", lambda stack: stack.stop("generator"))

    def settle(self) -> None:
        """Close the open windows, and wait until both pipelines have committed everything. Raises StepFailed."""
        self.timeline.phase("settle")
        self.stop_generator()
        self.ask("settle", lambda stack: stack.settle(_SETTLE_SECONDS))

    def verdict(self, *, as_is: bool = False) -> Verdicts:
        """Judge the source and both pipelines; the verdicts go to the folder, too. Raises StepFailed."""
        if not as_is:
            self.timeline.phase("judge")
        found = self.ask("the verdict", lambda stack: stack.verdict(as_is=as_is))
        (self.folder / "verdict.json").write_text(json.dumps(found.as_json(), indent=2) + "\n", encoding="utf-8")
        return found

    # Flink

    def job(self) -> dict[str, Any]:
        """The job's status now, as the watcher sees it. Raises StepFailed when there is none."""
        return self._status(lambda _: True, _ANSWER_SECONDS, "a job")

    def wait_for_checkpoints(self, count: int) -> dict[str, Any]:
        """Wait until the job has completed so many more, and return its status. Raises StepFailed."""
        wanted = self.job()["checkpoints_completed"] + count
        return self._status(
            lambda status: bool(status["checkpoints_completed"] >= wanted), _CHECKPOINTS_SECONDS,
            f"the job to complete {wanted} checkpoints",
        )  # fmt: skip

    def _status(self, enough: Callable[[dict[str, Any]], bool], seconds: float, what: str) -> dict[str, Any]:
        """Wait for a sample of the watcher that is enough. The first new one may have been asked for before now."""
        begin = time.time()
        fresh: dict[str, Any] = {}

        def sampled() -> dict[str, Any] | None:
            nonlocal fresh
            samples = [each for each in last_samples(self.folder / FLINK, 2) if each["at"] > begin]
            fresh = samples[-1] if len(samples) == 2 else {}
            if not self.watches():
                raise StepFailed(f"the watcher has ended; see {self.folder / 'watch.log'}")
            return fresh if "job_id" in fresh and enough(fresh) else None

        return wait_until(
            sampled, what, seconds=seconds, explain=lambda: str(fresh or "no answer"), every=_POLL_SECONDS
        )

    def complete_checkpoints(self) -> list[Checkpoint]:
        """Complete checkpoints of the newest job that has some, the oldest first. Raises StepFailed."""
        return of_newest_job(self.ask("the list of checkpoints", lambda stack: stack.checkpoints()))

    # Watching

    def watch(self, seconds: float = 3600) -> None:
        """Begin to watch, for so long at most; the samples go to the folder. Returns when its reader reads."""
        self._start_watchers(seconds)
        reads = (self.folder / "seen.jsonl").exists
        wait_until(lambda: reads() or not self.watches(), "the watcher to read", seconds=_WATCHER_SECONDS)
        if not reads():
            raise StepFailed(f"the watcher has ended; see {self.folder / 'watch.log'}")

    def watch_on(self, seconds: float = 3600) -> None:
        """Start the watcher again if it has gone with the stack: on Compose it runs in a container."""
        if not self.watches():
            self.timeline.add("note", "the watcher went with the stack; it reads on where it was")
            self._start_watchers(seconds)

    def _start_watchers(self, seconds: float) -> None:
        self._watcher = self._begin("watch.log", "samples", str(self.folder), str(seconds))
        self._follower = self._begin(CHECKPOINTS, "checkpoints", str(self.folder), "--words")

    def _begin(self, output: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "faultline.stack.watchers", *words]
        environ = self.stack.variables
        with (self.folder / output).open("ab") as out, (self.folder / "watch.log").open("ab") as log:
            # It ends when the pipe closes, which a SIGKILL to this program does too.
            return subprocess.Popen(command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=out, stderr=log)

    def watches(self) -> bool:
        """Return whether the watcher runs."""
        return self._watcher is not None and self._watcher.poll() is None

    def stop_watching(self) -> None:
        """End the watcher, and the inspector that follows the checkpoints."""
        if self._watcher is None:
            return
        (self.folder / "stop").touch()
        for process in filter(None, (self._watcher, self._follower)):
            try:
                process.wait(timeout=_WATCHER_SECONDS)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
            if process.stdin:
                process.stdin.close()
        self._watcher = self._follower = None


def _tail(words: str) -> str:
    return backend.last_lines(words, _SHOWN_LINES)
