"""The faults of a pipeline as data: each row is its steps, from the start to the end of the pipeline."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from faultline.faults import steps as of_stack
from faultline.formats.verdict import Verdict
from faultline.pipelines.place import is_on
from faultline.pipelines.spec import Pipeline, placeholders
from faultline.pipelines.trial import Step, Trial, reads_visits, try_steps
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.storage.batches import newest_batch
from faultline.waiting import wait_until

_REST_SECONDS = 30.0
"""A pipeline that has started again has written what it wants to repeat when its output rests for so long."""
_AWAY_SECONDS = 5.0
_COMMIT_SECONDS = 120.0


@dataclass(frozen=True)
class Do:
    """A method of the trial without arguments. `words`: what is printed."""

    method: str
    words: str

    def act(self, trial: Trial) -> None:
        """Call it."""
        getattr(trial, self.method)()

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class OnBroker:
    """A step of the fault matrix on a service of this stack."""

    step: of_stack.OnService

    def act(self, trial: Trial) -> None:
        """Do it."""
        self.step.act(trial.place.stack, lambda text: text)

    def __str__(self) -> str:
        return self.step.line


class Second:
    """Start the same command once more: it may refuse to run beside the first."""

    def act(self, trial: Trial) -> None:
        """Start it."""
        trial.start(may_end=True)

    def __str__(self) -> str:
        return "start it a second time"


class Away:
    """Wait while the broker is away."""

    def act(self, _trial: Trial) -> None:
        """Wait."""
        time.sleep(_AWAY_SECONDS)

    def __str__(self) -> str:
        return f"wait {_AWAY_SECONDS:g} s"


class Rest:
    """Wait until the output rests."""

    def act(self, trial: Trial) -> None:
        """Wait."""
        trial.rest(_REST_SECONDS)

    def __str__(self) -> str:
        return f"wait until the output has not grown for {_REST_SECONDS:g} s"


class AwaitCommit:
    """Wait until Spark has committed the batch whose rows are there: it does so after the write."""

    def act(self, trial: Trial) -> None:
        """Wait."""
        planned, committed = (trial.checkpoint / name for name in ("offsets", "commits"))
        wait_until(
            lambda: newest_batch(committed) is not None and newest_batch(committed) == newest_batch(planned),
            f"the newest batch of {trial.checkpoint} to be committed", seconds=_COMMIT_SECONDS,
        )  # fmt: skip

    def __str__(self) -> str:
        return "wait until the newest batch is committed"


class MoveNewestCommit:
    """Move the newest file of a Spark checkpoint's commits aside."""

    def act(self, trial: Trial) -> None:
        """Move it, and the checksum beside it, which Hadoop would compare with the next file of this name."""
        commits = trial.checkpoint / "commits"
        newest = newest_batch(commits)
        if newest is None:
            raise StackError(f"{commits} has no file; is checkpoint.folder that of a Spark query?")
        for name in (str(newest), f".{newest}.crc"):
            file = commits / name
            if file.exists():
                file.rename(trial.aside(name))

    def __str__(self) -> str:
        return "move the newest file of commits/ aside"


class MoveCheckpoint:
    """Move the checkpoint aside."""

    def act(self, trial: Trial) -> None:
        """Move it."""
        trial.checkpoint.rename(trial.aside("checkpoint"))

    def __str__(self) -> str:
        return "move the checkpoint aside"


class CopyCheckpoint:
    """Copy the checkpoint."""

    def act(self, trial: Trial) -> None:
        """Copy it."""
        shutil.copytree(trial.checkpoint, trial.aside("older"))

    def __str__(self) -> str:
        return "copy the checkpoint"


class RestoreCopy:
    """Put the copy in the place of the checkpoint, which is moved aside."""

    def act(self, trial: Trial) -> None:
        """Exchange them."""
        folder: Path = trial.checkpoint
        folder.rename(trial.aside("checkpoint"))
        trial.aside("older").rename(folder)

    def __str__(self) -> str:
        return "move the checkpoint aside, and put the copy there"


START, STOP = Do("start", "start the pipeline"), Do("stop", "stop the pipeline")
FEED, FED = Do("feed", "feed the topic"), Do("await_feed", "wait for the feed")
SETTLE = Do("settle", "wait until nothing is missing, or nothing more comes")
KILL = Do("kill_in_flight", "SIGKILL, as soon as the output grows")
ALL: tuple[Step, ...] = (FEED, FED, SETTLE)
RUN: tuple[Step, ...] = (START, *ALL, STOP)


@dataclass(frozen=True)
class Row:
    """One fault. `spark`: it needs a checkpoint of Spark; `checkpoint`: a folder; `broker`: the stack's broker."""

    name: str
    title: str
    steps: tuple[Step, ...]
    spark: bool = False
    checkpoint: bool = False
    broker: bool = False


_AGAIN: tuple[Step, ...] = (START, *ALL, Rest(), STOP)
ROWS = (
    Row(
        "kill",
        "SIGKILL in mid-flight, twice",
        (START, FEED, KILL, START, FEED, KILL, START, FED, SETTLE, STOP),
    ),
    Row(
        "kill-broker",
        "SIGKILL of the broker in mid-flight, and its start",
        (
            START, FEED, Do("await_growth", "wait until the output grows"), OnBroker(of_stack.Kill("kafka")), Away(),
            OnBroker(of_stack.Start("kafka")), FED, SETTLE, STOP,
        ),
        broker=True,
    ),
    Row(
        "newest-commit-deleted",
        "the newest file of commits/ is gone at the next start",
        (START, *ALL, AwaitCommit(), STOP, MoveNewestCommit(), *_AGAIN),
        spark=True,
        checkpoint=True,
    ),
    Row(
        "empty-checkpoint",
        "the checkpoint is gone at the next start",
        (*RUN, MoveCheckpoint(), *_AGAIN),
        checkpoint=True,
    ),
    Row(
        "older-checkpoint",
        "an older copy of the checkpoint at the next start",
        (*RUN, CopyCheckpoint(), *RUN, RestoreCopy(), *_AGAIN),
        checkpoint=True,
    ),
    Row("two-drivers", "the same command runs twice", (START, Second(), *ALL, Rest(), STOP)),
)  # fmt: skip


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
        ),
        "nothing feeds the topic; add feed.file or feed.command": (
            not feed.file and not feed.command and not reads_visits(stack, pipeline)
        ),
        "the file has no key checkpoint.folder": row.checkpoint and pipeline.checkpoint is None,
        "it is for checkpoints of Spark": row.spark and start is not None and start.environment != "spark",
        "the broker is not one of this stack": row.broker and not is_on(stack, pipeline),
    }
    return next((reason for reason, found in lacks.items() if found), "")


def try_row(stack: Stack, pipeline: Pipeline, row: Row | None) -> Verdict:
    """Try a row on a topic and in a folder of its own; None: run the pipeline once, without a fault."""
    if row is None:
        return try_steps(stack, pipeline, "", RUN, forgiving=False)
    run = f"{row.name}_{datetime.now(UTC):%Y%m%dT%H%M%S}"
    return try_steps(stack, pipeline, run, row.steps, forgiving=True)
