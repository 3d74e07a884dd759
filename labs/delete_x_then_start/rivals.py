"""Cases: two queries on one checkpoint."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

from faultline.command import CommandError
from faultline.settings import ROOT
from labs.delete_x_then_start.case import BATCHES, Bench, Case, Group
from labs.delete_x_then_start.damage import nothing
from labs.frame.pipeline import APPEND, RunResult, finish

_SECONDS = 120


def _same_application(bench: Bench) -> RunResult:
    """A query that has read all there is waits for more; a second one is started on its checkpoint.

    The rows arrive after that: a first query that is stopped inside a batch may have written it or not.
    """
    first = bench.pipeline.start()
    first.processAllAvailable()
    second = bench.pipeline.start()
    bench.pipeline.feed.send(10)
    outcome = finish(second)
    ended = "goes on" if first.isActive else f"stops: {first.exception()}" if first.exception() else "is stopped"
    return replace(outcome, before=f"the first {ended}; the second ")


def _other_application(bench: Bench) -> RunResult:
    """The first query is inside batch 4, planned and not committed; the second runs to its end meanwhile."""
    entered, released = threading.Event(), threading.Event()

    def wait_in_batch(batch: int) -> None:
        if batch == BATCHES:
            entered.set()
            released.wait(_SECONDS)

    bench.pipeline.before_write = wait_in_batch
    first = bench.pipeline.start()
    try:
        if not entered.wait(_SECONDS):
            raise CommandError(f"batch {BATCHES} did not begin within {_SECONDS} s")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "labs.delete_x_then_start.rival",
                str(bench.pipeline.folder),
                bench.topic.topic,
                bench.topic.bootstrap,
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        if done.returncode:
            raise CommandError(f"the second query failed: {done.stderr.strip()[-400:]}")
    finally:
        released.set()
    return replace(finish(first), before=f"the second {done.stdout.strip()}; the first ")


GROUP = Group(
    "A second query on the same checkpoint",
    "",
    [
        Case(
            "rival-same",
            "started in the same Spark application",
            "Rely on it for restarts only. `spark.sql.streaming.stopActiveRunOnRestart=false` makes the second one "
            "the one that fails.",
            nothing,
            sinks=(APPEND,),
            start=_same_application,
        ),
        Case(
            "rival-other",
            "started in another application, while the first is inside batch 4",
            "The first stops when it finds the commit taken; by then both have written the batch. Make sure that "
            "one runs: a lock beside the checkpoint (as this project's synchronizer has), or a scheduler that waits "
            "for the end of the old one.",
            nothing,
            sinks=(APPEND,),
            start=_other_application,
        ),
    ],
)
