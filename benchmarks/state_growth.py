"""Benchmark of checkpoints and restores as the number of open windows grows: state on the heap, and in RocksDB.

Usage: python -m benchmarks.state_growth [WINDOWS[,WINDOWS...] [CHECKPOINTS [RESTORES]]]
       python -m benchmarks.state_growth plot

For each number the windowing job reads a visit for each of so many visit_ids, all in one window that stays open. Then a
hundredth of the windows changes before each checkpoint; the windows are counted in a savepoint; the TaskManager is
killed and started again; and in the end all windows close, are committed, and the verdict counts them.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.closing import close_windows
from benchmarks.cpu import Disturbance, seconds_of_program
from benchmarks.flink_runs import settings_of_run
from benchmarks.growth_report import DATA, PLOT, Row, lines, load, save
from benchmarks.job_times import Checkpoint, Job, submitted
from benchmarks.own_stack import OwnStack, own_stack
from faultline.command import run
from faultline.messages import say
from faultline.settings import HASHMAP, ROCKSDB
from faultline.stack.errors import StackError
from faultline.stop import interrupt_once
from faultline.verbs.arguments import count

_SIZES = "1000,10000,100000,1000000"
_CHECKPOINTS = "5"
_RESTORES = "3"
_CHANGED_SHARE = 100
"""One in so many windows changes between two checkpoints."""
_HEAP = "1536m"
"""Of the TaskManager's tasks, instead of the usual 320m: room for a million windows with state on the heap."""
_BY_HAND_MS = "3600000"
"""The interval of periodic checkpoints: this program triggers each one."""
_OPERATOR = "windows"
"""uid of the operator that keeps the windows."""
_SAVEPOINT = re.compile(r"Savepoint completed\. Path: (\S+)")


def windows_in(report: Mapping[str, Any]) -> int:
    """Count the open windows in the inspector's report of a savepoint."""
    stores = [store for each in report["operators"] if each["uid"] == _OPERATOR for store in each["state"]]
    return sum(window["keys"] for store in stores for window in store["windows"])


class Run:
    """One backend with one number of windows."""

    def __init__(self, stack: OwnStack, backend: str, windows: int) -> None:
        name = f"{backend}-{windows}"
        own = settings_of_run(name, f"visits-{name}", parallelism=1)
        self._stack = stack.changed({**own, "FLINK_STATE_BACKEND": backend})
        self._backend, self._windows, self._visits = backend, windows, 0

    def measure(self, checkpoints: int, restores: int) -> Row:
        """Fill, measure, restore, close and judge. Raises StackError when a count is not what it must be."""
        disturbance = Disturbance(self._stack.mark)
        self._stack.topics()
        self._send("1", "0")
        job = submitted(self._stack)
        job.wait_until_read(self._visits)
        first = job.checkpoint()
        later = [self._changed_checkpoint(job, number) for number in range(checkpoints)]
        self._count(job)
        restored = [self._restore(job) for _ in range(restores)]
        outcome, written, close_seconds = self._close(job)
        job.cancel()
        return Row(
            self._backend, self._windows, self._visits, first.written_bytes, tuple(each.seconds for each in later),
            tuple(each.full_bytes for each in later), tuple(each.written_bytes for each in later), tuple(restored),
            close_seconds, written, outcome, disturbance.disturbed(),
        )  # fmt: skip

    def _send(self, step: str, first: str) -> None:
        acknowledged = int(self._stack.tool("benchmarks.open_windows", str(self._windows), step, first))
        self._visits += acknowledged

    def _changed_checkpoint(self, job: Job, number: int) -> Checkpoint:
        self._send(str(_CHANGED_SHARE), str(number % _CHANGED_SHARE))
        job.wait_until_read(self._visits)
        taken = job.checkpoint()
        say(f"{self._backend}, {self._windows} windows: {taken.seconds:.2f} s, {taken.written_bytes} bytes written")
        return taken

    def _count(self, job: Job) -> None:
        """Count the windows in the state, as a savepoint has it: RocksDB's own files only RocksDB opens."""
        folder = self._stack.home.root / "savepoints"
        words = self._stack.ask(self._stack.service("jobmanager"), "flink", "savepoint", job.id, folder.as_uri())
        found = _SAVEPOINT.search(words)
        if found is None:
            raise StackError(f"Flink took no savepoint: {words.strip()[-300:]}", 1)
        savepoint = urlsplit(found[1]).path
        report = json.loads(self._stack.tool("faultline.inspector", savepoint, "--json", "--no-lag", "--limit", "0"))
        if (counted := windows_in(report)) != self._windows:
            raise StackError(f"the state has {counted} windows, not {self._windows}: not a valid measurement", 1)

    def _restore(self, job: Job) -> float:
        killed_at = time.time()
        self._stack.backend.kill(self._stack.service("taskmanager"))
        self._stack.start("taskmanager")
        seconds = job.wait_until_restored(killed_at)
        say(f"{self._backend}, {self._windows} windows: restored in {seconds:.2f} s")
        return seconds

    def _close(self, job: Job) -> tuple[str, int, float]:
        """Close all windows; returns the verdict, the windows that came out, and the seconds until they were committed.

        Raises StackError unless all windows came out.
        """
        closing = close_windows(self._stack)
        began = time.monotonic()
        # The counter began again with the restored job.
        job.wait_until_read(closing)
        job.checkpoint()
        seconds = time.monotonic() - began
        judged = self._stack.require_right("flink", written=self._windows)
        return judged.outcome, judged.observed, seconds


def measure(sizes: Sequence[int], checkpoints: int, restores: int) -> None:
    """Measure each backend with each number of windows, on a separate stack; keep each row."""
    rows: list[Row] = []
    with own_stack({"FLINK_TASK_HEAP": _HEAP, "FLINK_CHECKPOINT_INTERVAL_MS": _BY_HAND_MS}) as stack:
        stack.start("kafka", "jobmanager")
        for windows in sizes:
            for backend in (HASHMAP, ROCKSDB):
                # Memory is divided otherwise, and no run finds the compiled code of another.
                chosen = stack.changed({"FLINK_STATE_BACKEND": backend})
                chosen.start("taskmanager")
                managed = chosen.settings.typed.flink_managed_megabytes
                say(f"{backend}, {windows} windows: {_HEAP} of heap, {managed}m of managed memory for 4 slots")
                rows.append(Run(stack, backend, windows).measure(checkpoints, restores))
                save(rows)
                say("\n".join(lines(rows[-1:])))
                chosen.stop("taskmanager")


def plot(stack: OwnStack, data: Path = DATA, picture: Path = PLOT) -> None:
    """Draw the plot from the figures, in an environment of its own, which the first call fetches."""
    stack.backend.artifacts.make_environment("plots")
    python = str(stack.backend.artifacts.interpreter("plots"))
    command = [python, "-m", "benchmarks.growth_plot", str(data), str(picture)]
    seconds_of_program("the plot", command, stack.backend.environment("tools"))
    say(f"drawn from {data}: {picture}")


def main() -> int:
    """Run the command line; returns the exit code. Raises StackError."""
    interrupt_once()
    words = sys.argv[1:]
    if words != ["plot"]:
        sizes, checkpoints, restores = [*words, *(_SIZES, _CHECKPOINTS, _RESTORES)[len(words) :]]
        numbers = [count(each, "WINDOWS") for each in sizes.split(",")]
        measure(numbers, count(checkpoints, "CHECKPOINTS"), count(restores, "RESTORES"))
    print("\n".join(lines(sorted(load(), key=lambda row: (row.backend, row.windows)))), flush=True)
    with own_stack() as stack:
        plot(stack)
    return 0


if __name__ == "__main__":
    run("state_growth.sh", main)
