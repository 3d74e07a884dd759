"""One run of a pipeline: start, feed, kill and stop it; everything that it starts ends with it."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from faultline.command import CommandError
from faultline.formats.verdict import Verdict
from faultline.kafka_errors import said
from faultline.messages import say
from faultline.pipelines.judge import Judge
from faultline.pipelines.line import Line
from faultline.pipelines.prepare import NOTE, Prepared, is_on, prepare
from faultline.pipelines.readers import reader_of
from faultline.pipelines.spec import STEP_SECONDS, Pipeline, SpecError, Start, filled
from faultline.settings import ROOT, as_environment
from faultline.stack.backend import RUNNING
from faultline.stack.errors import StackError
from faultline.stack.processes import Process, Program, send
from faultline.stack.stack import Stack
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from faultline.verdict.store import open_store
from faultline.waiting import TimedOut, attempts, wait_until

ALIVE_SECONDS = 3.0
"""A pipeline that still runs after this is alive."""
_LOOK_SECONDS = 1.0
_WATCH_SECONDS = 0.002
"""Pause between two looks at an output whose next row is the moment of a fault."""
_FIRST_SECONDS = 300.0
_UNSEEN_SECONDS = 10.0
_RESTARTS = 3
_TOPIC_SECONDS = 30.0


@dataclass(frozen=True)
class Step:
    """One act of a run; `words` are printed before it. `act` raises StackError."""

    words: str
    act: Callable[[Trial], object]


class Trial:
    """A prepared pipeline that runs; use it as a context manager: the end kills what was started.

    `forgiving`: a pipeline that ends by itself is started again, as a supervisor would.
    """

    def __init__(self, prepared: Prepared, judge: Judge, *, forgiving: bool) -> None:
        self.prepared, self._judge, self._forgiving = prepared, judge, forgiving
        if prepared.pipeline.start is None:
            raise SpecError(f"{prepared.pipeline.file} has no table [start], so it can be judged only")
        self.notes: list[str] = []
        self.programs: list[Program] = []
        self._feeder: Program | None = None
        self._started = self._fed = self._restarts = 0
        self._may_run = False
        self._slowest = 0.0
        """The most seconds from a start to the next growth of the output."""
        self._waits_since: float | None = None
        self._before: object = None
        """The output's mark at the last start."""

    def __enter__(self) -> Self:
        self.prepared.work.mkdir(parents=True, exist_ok=True)
        (self.prepared.work.parent / NOTE).write_text(str(self.pipeline.file.resolve()), encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # A start command that has ended may have left a container, say, that runs.
            if self._may_run and (command := self._start.kill or self._start.stop):
                self._tell(command)
        except CommandError as failed:
            if error is None:
                raise
            say(str(failed))
        finally:
            with contextlib.ExitStack() as held:
                for program in [*self.programs, *([self._feeder] if self._feeder else [])]:
                    held.callback(program.close)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline as it is now: an upgrade changes it."""
        return self.prepared.pipeline

    @property
    def _start(self) -> Start:
        assert self.pipeline.start, "no trial begins without a table [start]"
        return self.pipeline.start

    @property
    def line(self) -> Line:
        """The line to the Postgres that was started for the pipeline."""
        assert self.prepared.line, "a row that needs the line does not apply without one"
        return self.prepared.line

    # The pipeline

    def start(self, *, may_end: bool = False) -> None:
        """Start it, and wait until it is alive; with `may_end`, one that ends at once is a note and no error."""
        words, name = words_of(self.prepared, "start.command", self._start.command), self.pipeline.name
        self._started += 1
        self._may_run = True
        self._before, self._waits_since = self.mark(), time.monotonic()
        log = self.prepared.work / f"{name}-{self._started}.log"
        program = Program(words, self.prepared.environ, log, self.prepared.work)
        self.programs.append(program)
        for _ in attempts(ALIVE_SECONDS):
            if not program.running:
                break
        # On a busy machine the keeper of a program that has ended takes its time to say so.
        if program.running and program.processes():
            return
        try:
            code = program.wait(seconds=_UNSEEN_SECONDS)
        except StackError:
            raise StackError(
                f"{name}: the start command runs, and its processes cannot be seen (sudo, env -i?); let it run as the "
                "user, with the environment that it gets"
            ) from None
        children = len(program.processes())
        program.close()
        self.programs.remove(program)
        if children:
            raise StackError(
                f"{name}: the start command has forked: it ended and left {children} processes, which were ended; "
                "let it stay in the foreground"
            )
        reason = f"{name}: the start command ended at once (exit code {code}): {program.last_line() or 'no output'}"
        if not may_end:
            raise StackError(f"{reason}; see {log}")
        self.notes.append(reason)

    def stop(self) -> None:
        """SIGTERM to it or its own command, and SIGKILL to what is left after its time."""
        if self._start.stop and self.programs:
            self._tell(self._start.stop)
        for program in self.programs:
            program.close(seconds=self._start.stop_seconds)
        self.programs.clear()
        self._may_run = False

    def _tell(self, command: str) -> None:
        """Run the command that stops or kills the pipeline. Raises StackError when it fails."""
        try:
            done = subprocess.run(
                words_of(self.prepared, "start.stop or start.kill", command), env=dict(self.prepared.environ),
                cwd=self.prepared.work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STEP_SECONDS,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise StackError(f"{self.pipeline.name}: {command} did not end within {STEP_SECONDS:g} s") from None
        if done.returncode:
            words = " ".join((done.stderr or done.stdout).split())
            raise StackError(f"{self.pipeline.name}: {command} failed (exit code {done.returncode}): {words}")

    def kill_in_flight(self) -> None:
        """SIGKILL to all of its processes, or its own command, as soon as the output has grown."""
        processes = [process for program in self.programs for process in program.processes()]
        self.await_growth(every=_WATCH_SECONDS)
        self.kill(processes)

    def kill(self, processes: Sequence[Process] = ()) -> None:
        """Kill it; `processes` are those that are known, so that they need not be looked for first."""
        if self._start.kill:
            self._tell(self._start.kill)
        send(processes, signal.SIGKILL)
        for program in self.programs:
            program.kill()
            program.close()
        self.programs.clear()
        self._may_run = False

    def look_for_the_second(self) -> None:
        """Note that a copy of the pipeline has ended before the end of the row."""
        for program in self.programs:
            if not program.running:
                words = program.last_line() or "no output"
                self.notes.append(f"one of the copies of {self.pipeline.name} ended by itself: {words}")

    def upgrade(self) -> None:
        """From the next start on, the upgraded pipeline runs. Raises StackError when its release cannot be had."""
        assert self.prepared.upgraded
        self.prepared = self.prepared.upgraded()

    def require_running(self) -> None:
        """Start a pipeline that has ended by itself again, or raise StackError."""
        ended = [program for program in self.programs if not program.running]
        if len(ended) < len(self.programs):
            return
        words = ended[-1].last_line() if ended else ""
        reason = f"{self.pipeline.name} ended by itself: {words or 'no output'}"
        if not self._forgiving or self._restarts == _RESTARTS:
            raise StackError(f"{reason}; see {ended[-1].log if ended else self.prepared.work}")
        self.stop()
        self._restarts += 1
        self.notes.append(f"{reason}; it was started again")
        self.start(may_end=True)

    # The source

    def feed(self) -> None:
        """Begin to send records to the topic."""
        if self._feeder:
            self.await_feed()
        self._fed += 1
        log = self.prepared.work / f"feed-{self._fed}.log"
        if self.pipeline.feed.command:
            words = words_of(self.prepared, "feed.command", self.pipeline.feed.command)
            self._feeder = Program(words, self.prepared.environ, log, self.prepared.work)
        else:
            self._feeder = Program(_feed_command(self.prepared), _feed_environ(self.prepared), log, ROOT)

    def await_feed(self) -> None:
        """Wait until everything is sent. Raises StackError when the feeder fails."""
        feeder = self._feeder
        if feeder is None:
            return

        def ended() -> bool:
            self.require_running()
            return not feeder.running

        wait_until(ended, f"the feed of {self.pipeline.source.topic}", seconds=STEP_SECONDS)
        code = feeder.wait(seconds=STEP_SECONDS)
        if code:
            raise StackError(f"the feed failed (exit code {code}): {feeder.last_line()}; see {feeder.log}")
        feeder.close()
        self._feeder = None

    # The output

    def mark(self) -> object:
        """Return something that changes whenever the output has grown; None while there is none."""
        return reader_of(self.pipeline.output).mark(self.pipeline.output)

    def await_growth(self, *, every: float = _LOOK_SECONDS) -> None:
        """Wait until the output grows. Raises StackError."""
        before = self.mark()

        def grown() -> bool:
            self.require_running()
            return self.mark() not in (before, None)

        try:
            wait_until(grown, "the output to grow", seconds=STEP_SECONDS, every=every)
        except TimedOut:
            raise StackError(
                f"{self.pipeline.name} wrote nothing within {STEP_SECONDS:g} s; see its logs in {self.prepared.work}"
            ) from None
        self._has_grown()

    def settle(self) -> None:
        """Wait until nothing is missing, or until the output rests for `quiet_seconds`."""
        self._judge.read_source()
        self._watch(self._start.quiet_seconds, self._is_whole)

    def _is_whole(self) -> bool:
        # A column that no row has yet is wrong in the verdict only.
        with contextlib.suppress(Unknown, SpecError):
            return not self._judge.compare().lost
        return False

    def await_quiet(self, seconds: float) -> None:
        """Wait until the output has not grown for so long."""
        self._watch(seconds, lambda: False)

    def _watch(self, seconds: float, done: Callable[[], bool]) -> None:
        """Return when `done`, or when the output has not grown for so long, or for twice its slowest start so far.

        A machine that is busy starts a pipeline later than usual: what is not written yet is not lost. How long a first
        start takes is not known, so it has `_FIRST_SECONDS`.
        """
        last, since = self.mark(), time.monotonic()
        if last not in (self._before, None):
            self._waits_since = None
        for _ in attempts(STEP_SECONDS, _LOOK_SECONDS):
            if done():
                return
            self.require_running()
            # None is a look that failed.
            if (now := self.mark()) not in (last, None):
                last, since = now, time.monotonic()
                self._has_grown()
                continue
            known = self._slowest or self._waits_since is None
            limit = max(seconds, 2 * self._slowest) if known else _FIRST_SECONDS
            if (rested := time.monotonic() - since) > limit:
                if self._waits_since is not None:
                    self.notes.append(f"the output did not grow in the {rested:.0f} s after the last start")
                return
        raise StackError(f"the output of {self.pipeline.name} does not rest within {STEP_SECONDS:g} s; feed less")

    def _has_grown(self) -> None:
        if self._waits_since is not None:
            self._slowest = max(self._slowest, time.monotonic() - self._waits_since)
        self._waits_since = None
        self._restarts = 0

    # The checkpoint

    @property
    def checkpoint(self) -> Path:
        """The folder of the checkpoint. Raises StackError when it is not there."""
        if self.pipeline.checkpoint is None:
            raise SpecError(f"{self.pipeline.file} has no key checkpoint.folder")
        folder = self.prepared.work / self.pipeline.checkpoint.folder
        inside, work = folder.resolve(), self.prepared.work.resolve()
        if work not in inside.parents or inside.is_relative_to(work / "aside"):
            raise SpecError(
                f"{self.pipeline.file}: checkpoint.folder is {inside}, which a row would move; name one below {work},"
                " the folder of the run"
            )
        if not folder.is_dir():
            raise StackError(f"checkpoint {folder} does not exist; is checkpoint.folder right?")
        return folder

    def aside(self, name: str) -> Path:
        """A path in the folder of the run for what is moved or copied there: nothing is deleted."""
        folder = self.prepared.work / "aside"
        folder.mkdir(exist_ok=True)
        return folder / name


def words_of(prepared: Prepared, key: str, command: str) -> list[str]:
    """Return the words of a command of the file. Raises SpecError when its program is not found."""
    # A placeholder may stand for a path with a space.
    start, words = prepared.pipeline.start, [filled(word, prepared.names) for word in shlex.split(command)]
    # A path is relative to the folder of the run.
    program = str(prepared.work / words[0]) if words and "/" in words[0] else "".join(words[:1])
    if not shutil.which(program, path=prepared.environ.get("PATH")):
        where = start.environment if start and start.environment else "the user"
        raise SpecError(
            f"{prepared.pipeline.file}: {' '.join(words[:1])}, the program of {key}, is not on PATH of {where}; "
            "install it, or choose start.environment"
        )
    return words


def _feed_command(prepared: Prepared) -> list[str]:
    feed, source = prepared.pipeline.feed, prepared.pipeline.source
    if feed.file:
        file = feed_file(prepared.pipeline)
        words = [source.bootstrap, source.topic, str(file), str(feed.per_second)]
        return [sys.executable, "-m", "faultline.pipelines.feed", *words]
    if not reads_visits(prepared.stack, prepared.pipeline):
        raise SpecError(f"{prepared.pipeline.file}: nothing feeds topic {source.topic}; add feed.file or feed.command")
    flags = ["--total", str(feed.records), "--rate", str(feed.per_second)]
    return [str(ROOT / "faultline" / "services" / "generator.sh"), *flags]


def feed_file(pipeline: Pipeline) -> Path:
    """Return the file that feeds the topic. Raises SpecError when it is not there."""
    file = pipeline.file.resolve().parent / pipeline.feed.file
    if not file.is_file():
        raise SpecError(f"{pipeline.file}: feed.file is {file}, which is no file; name one with a record a line")
    return file


def reads_visits(stack: Stack, pipeline: Pipeline) -> bool:
    """Return whether the generator makes what the pipeline reads: the stack's topic of visits, or one of a row."""
    visits = stack.settings.values["VISITS_TOPIC"]
    return pipeline.source.topic == visits or pipeline.source.topic.startswith(f"{visits}_")


def _feed_environ(prepared: Prepared) -> dict[str, str]:
    source = prepared.pipeline.source
    chosen = {
        "VISITS_TOPIC": source.topic, "KAFKA_BOOTSTRAP": source.bootstrap, "HOME": str(prepared.stack.home.root),
        "ARTIFACTS": prepared.stack.settings.values["ARTIFACTS"],
    }  # fmt: skip
    return {**prepared.stack.environ, **as_environment(chosen)}


def _make_topics(prepared: Prepared) -> None:
    """Make the topic that the pipeline reads and the one that it writes, where they are missing. Raises StackError."""
    source, output = prepared.pipeline.source, prepared.pipeline.output
    _make_topic(source.bootstrap, source.topic, source.partitions)
    if output.reader == "kafka":
        _make_topic(output.bootstrap, output.topic, source.partitions)


def _make_topic(bootstrap: str, topic: str, partitions: int) -> None:
    if topic in Cluster(bootstrap).topics():
        return
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    # Timestamps may be event times: a time limit would delete records while they are judged.
    wanted = NewTopic(topic, partitions, -1, config={"retention.ms": "-1"})
    try:
        admin.create_topics([wanted])[topic].result(timeout=_TOPIC_SECONDS)
    except KafkaException as error:
        raise StackError(f"topic {topic} cannot be made at {bootstrap}: {said(error)}") from None
    wait_until(lambda: topic in Cluster(bootstrap).topics(), f"topic {topic}", seconds=_TOPIC_SECONDS)


@contextlib.contextmanager
def broker_running(stack: Stack, pipeline: Pipeline) -> Iterator[None]:
    """Start this stack's broker if the topic is on it and none runs; it is stopped again at the end."""
    if not is_on(stack, pipeline):
        yield
        return
    copies = stack.copies("kafka")
    ran = [row for row in copies if stack.backend.state(row) == RUNNING]
    try:
        if not ran:
            stack.start_brokers()
        yield
    finally:
        for row in copies:
            if not ran:
                stack.stop(row.name)
            # An interrupt may come while a row has the broker killed.
            elif row in ran and stack.backend.state(row) != RUNNING:
                stack.start(row.name)


def try_steps(stack: Stack, pipeline: Pipeline, run: str, steps: Sequence[Step], *, forgiving: bool) -> Verdict:
    """Do the steps in a folder of their own (`run`, or the usual one when it is empty), and judge.

    Raises StackError, SpecError and Unknown when a step fails; then nothing that was started is left.
    """
    with broker_running(stack, pipeline), prepare(stack, pipeline, run) as prepared, open_store() as store:
        judge = Judge(store, prepared.pipeline)
        _make_topics(prepared)
        with Trial(prepared, judge, forgiving=forgiving) as trial:
            for step in steps:
                say(f"   {step.words}")
                step.act(trial)
        verdict = judge.verdict()
        notes = (*verdict.notes, *trial.notes, f"logs and output are in {prepared.work}")
        return replace(verdict, notes=notes)
