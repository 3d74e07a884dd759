"""The faults of a pipeline as data: each row is its steps, from the start to the end of the pipeline."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from faultline.faults import steps as of_stack
from faultline.formats.verdict import Verdict
from faultline.pipelines.prepare import is_on
from faultline.pipelines.spec import Pipeline, placeholders
from faultline.pipelines.trial import Step, Trial, reads_visits, try_steps
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.storage.batches import newest_batch
from faultline.waiting import wait_until

_QUIET_SECONDS = 30.0
"""A pipeline that has started again has written what it wants to repeat when its output is quiet for so long."""
_COMMIT_SECONDS = 120.0


def _on_broker(step: of_stack.OnService) -> Step:
    """A step of the fault matrix on a service of this stack."""
    return Step(step.line, lambda trial: step.act(trial.prepared.stack, lambda text: text))


def _wait(seconds: float) -> Step:
    return Step(f"wait {seconds:g} s", lambda _trial: time.sleep(seconds))


def _await_commit(trial: Trial) -> None:
    """Wait until Spark has committed the batch whose rows are there: it does so after the write."""
    planned, committed = (trial.checkpoint / name for name in ("offsets", "commits"))
    wait_until(
        lambda: newest_batch(committed) is not None and newest_batch(committed) == newest_batch(planned),
        f"the newest batch of {trial.checkpoint} to be committed", seconds=_COMMIT_SECONDS,
    )  # fmt: skip


def _move_newest_commit(trial: Trial) -> None:
    """Move it, and the checksum beside it, which is not that of the next file of this name."""
    commits = trial.checkpoint / "commits"
    newest = newest_batch(commits)
    if newest is None:
        raise StackError(f"{commits} has no file; is checkpoint.folder that of a Spark query?")
    for name in (str(newest), f".{newest}.crc"):
        file = commits / name
        if file.exists():
            file.rename(trial.aside(name))


def _restore_copy(trial: Trial) -> None:
    folder: Path = trial.checkpoint
    folder.rename(trial.aside("checkpoint"))
    trial.aside("older").rename(folder)


def _lose_answer(trial: Trial) -> None:
    before = trial.mark()
    trial.line.lose_answer(lambda: trial.mark() != before)


def _mend(trial: Trial) -> None:
    trial.line.mend()
    if not trial.line.refused:
        raise StackError(
            f"{trial.pipeline.name} had no connection by the line while the line was cut: nothing is shown"
        )


def _require_lost_answer(trial: Trial) -> None:
    if not trial.line.lost:
        raise StackError(f"{trial.pipeline.name} has written rows, and no answer to a commit came by the line")


START, STOP = Step("start the pipeline", Trial.start), Step("stop the pipeline", Trial.stop)
FEED, FED = Step("feed the topic", Trial.feed), Step("wait for the feed", Trial.await_feed)
SETTLE = Step("wait until nothing is missing, or nothing more comes", Trial.settle)
KILL = Step("SIGKILL, as soon as the output grows", Trial.kill_in_flight)
SECOND = Step("start it a second time", lambda trial: trial.start(may_end=True))
BOTH = Step("look whether both have run", Trial.look_for_the_second)
GROWTH = Step("wait until the output grows", Trial.await_growth)
QUIET = Step(
    f"wait until the output has not grown for {_QUIET_SECONDS:g} s", lambda trial: trial.await_quiet(_QUIET_SECONDS)
)
AWAY: dict[str, tuple[Step, ...]] = {
    "kill-broker": (_on_broker(of_stack.Kill("kafka")), _wait(5), _on_broker(of_stack.Start("kafka")), FEED),
    "sink-away": (
        Step("cut the line to the database", lambda trial: trial.line.cut()), FEED, _wait(30),
        Step("mend the line", _mend),
    ),
}  # fmt: skip
"""That which is taken from a running pipeline for a while, by the name of the row."""
ALL: tuple[Step, ...] = (FEED, FED, SETTLE)
RUN: tuple[Step, ...] = (START, *ALL, STOP)


@dataclass(frozen=True)
class Row:
    """One fault.

    `spark`: it needs a checkpoint of Spark; `checkpoint`: a folder; `broker`: the stack's broker; `line`: a Postgres
    that is started for the pipeline; `upgrade`: something to upgrade to.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    spark: bool = False
    checkpoint: bool = False
    broker: bool = False
    line: bool = False
    upgrade: bool = False


_AGAIN: tuple[Step, ...] = (START, *ALL, QUIET, STOP)
_MOVE_CHECKPOINT = Step("move the checkpoint aside", lambda trial: trial.checkpoint.rename(trial.aside("checkpoint")))
ROWS = (
    Row(
        "kill",
        "SIGKILL in mid-flight, twice",
        (START, FEED, KILL, START, FEED, KILL, START, FED, SETTLE, QUIET, STOP),
    ),
    Row(
        "kill-broker",
        "SIGKILL of the broker in mid-flight, and its start",
        (START, FEED, GROWTH, *AWAY["kill-broker"], FED, SETTLE, QUIET, STOP),
        broker=True,
    ),
    Row(
        "newest-commit-deleted",
        "the newest file of commits/ is gone at the next start",
        (
            START, *ALL, Step("wait until the newest batch is committed", _await_commit), STOP,
            Step("move the newest file of commits/ aside", _move_newest_commit), *_AGAIN,
        ),
        spark=True,
        checkpoint=True,
    ),
    Row(
        "empty-checkpoint",
        "the checkpoint is gone at the next start",
        (*RUN, _MOVE_CHECKPOINT, *_AGAIN),
        checkpoint=True,
    ),
    Row(
        "older-checkpoint",
        "an older copy of the checkpoint at the next start",
        (
            *RUN, Step("copy the checkpoint", lambda trial: shutil.copytree(trial.checkpoint, trial.aside("older"))),
            *RUN, Step("move the checkpoint aside, and put the copy there", _restore_copy), *_AGAIN,
        ),
        checkpoint=True,
    ),
    Row(
        "upgrade",
        "stopped in mid-flight, and upgraded before its next start",
        (
            START, FEED, GROWTH, STOP, Step("upgrade the pipeline", Trial.upgrade), START, *ALL, QUIET, STOP,
        ),
        upgrade=True,
    ),
    Row("two-drivers", "the same command runs twice", (START, SECOND, *ALL, QUIET, BOTH, STOP)),
    Row(
        "sink-away",
        "the database cannot be reached for 30 s",
        (START, FEED, GROWTH, *AWAY["sink-away"], FED, SETTLE, QUIET, STOP),
        line=True,
    ),
    Row(
        "answer-lost",
        "the answer to a commit of the database never arrives",
        (
            START, Step("lose the answer to the next commit of rows", _lose_answer), FEED, FED, SETTLE, QUIET,
            Step("look whether it was lost", _require_lost_answer), STOP,
        ),
        line=True,
    ),
)  # fmt: skip


def _is_below_work(path: str) -> bool:
    """Return whether a path of the file is relative or begins with {work}/, and so is in the folder of the run."""
    below = path.removeprefix("{work}/")
    leaves = Path(below).is_absolute() or ".." in Path(below).parts or below.startswith("{here}")
    return below not in ("", "{work}") and not leaves


def applies(row: Row, pipeline: Pipeline, stack: Stack) -> str:
    """Return why a row does not apply to a pipeline; empty when it does."""
    start, feed = pipeline.start, pipeline.feed
    lacks = {
        "the file has no table [start]": start is None,
        "a row has a topic of its own, so start.command needs {topic}": (
            start is not None and "topic" not in placeholders(start)
        ),
        "a row has an output of its own, so the keys of output need one of {topic}, {work}, {postgres}": (
            placeholders(pipeline.output).isdisjoint({"topic", "work", "postgres"})
            and not _is_below_work(pipeline.output.path)
        ),
        "a row moves its own checkpoint, so checkpoint.folder is relative, or begins with {work}/": (
            pipeline.checkpoint is not None and not _is_below_work(pipeline.checkpoint.folder)
        ),
        "a row has a topic of its own, so feed.command needs {topic}": (
            bool(feed.command) and "topic" not in placeholders(feed)
        ),
        "nothing feeds the topic; add feed.file or feed.command": (
            not feed.file and not feed.command and not reads_visits(stack, pipeline)
        ),
        "the file has no key checkpoint.folder": row.checkpoint and pipeline.checkpoint is None,
        "it is for checkpoints of Spark": row.spark and start is not None and start.environment in ("flink", "python"),
        "the file has no table [upgrade]": row.upgrade and pipeline.upgrade is None,
        "the broker is not one of this stack": row.broker and not is_on(stack, pipeline),
        "the output is no Postgres at {postgres}": row.line and "postgres" not in placeholders(pipeline.output),
    }
    return next((reason for reason, found in lacks.items() if found), "")


def try_row(stack: Stack, pipeline: Pipeline, row: Row | None) -> Verdict:
    """Try a row on a topic and in a folder of its own; None: run the pipeline once, without a fault."""
    if row is None:
        return try_steps(stack, pipeline, "", RUN, forgiving=False)
    run = f"{row.name}_{datetime.now(UTC):%Y%m%dT%H%M%S}"
    return try_steps(stack, pipeline, run, row.steps, forgiving=True)
