"""Benchmark of the time from a SIGKILL until a pipeline's next checkpoint is complete or its next batch committed.

Times are those that Flink and the file system record: the pause between two looks does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.own_stack import OwnStack, own_stack, run_benchmark
from benchmarks.table import median_and_spread, row
from faultline.faults.scene import Scene
from faultline.faults.timeline import Timeline
from faultline.formats.verdict import Outcome
from faultline.messages import say
from faultline.stack.errors import StackError
from faultline.waiting import wait_until
from flink_job.rest import FlinkError, active_job, call, checkpoints, working_taskmanager

_SPARES = {"FLINK_TASKMANAGERS": "2", "FLINK_JOBMANAGERS": "2"}
_LIMIT_SECONDS = 120.0
_WIDTHS = "{:<58} {:>8} {:>12}"

Fault = Callable[[OwnStack], float]
"""Breaks something, repairs it if nothing else does, and returns the seconds until the pipeline has recovered."""


class Flink:
    """Queries that the faults send to the JobManagers."""

    def __init__(self, stack: OwnStack) -> None:
        settings = stack.settings.typed
        self._base, self._name = settings.flink_rest, settings.text("FLINK_JOB_NAME")

    def job(self) -> str:
        """The id of the running job. Raises StackError when there is none."""
        job = active_job(self._base, self._name)
        if job is None:
            raise StackError("no Flink job is active")
        return str(job["jid"])

    def statistics(self) -> dict[str, Any]:
        """Checkpoint statistics of the running job."""
        return checkpoints(self._base, self.job())

    def taskmanagers(self) -> int:
        """Return how many TaskManagers are registered."""
        return len(call(self._base, "/taskmanagers")["taskmanagers"])

    def seconds_to_checkpoint(self, killed_at: float) -> float:
        """Wait for a checkpoint that the restored job completes after a kill; returns the seconds from the kill."""

        def completed() -> float | None:
            latest = self.statistics()["latest"]
            restored, newest = latest["restored"], latest["completed"]
            if not restored or not newest or newest["trigger_timestamp"] < restored["restore_timestamp"]:
                return None
            if restored["restore_timestamp"] / 1000 <= killed_at:
                return None
            return float(newest["latest_ack_timestamp"] / 1000 - killed_at)

        return wait_until(
            completed, "a checkpoint after the kill", seconds=_LIMIT_SECONDS, despite=(FlinkError, StackError)
        )

    def wait_until_steady(self) -> None:
        """Wait for two more checkpoints, so that the next fault meets a job at work."""
        wanted = self.statistics()["counts"]["completed"] + 2
        wait_until(
            lambda: bool(self.statistics()["counts"]["completed"] >= wanted), "two checkpoints", seconds=_LIMIT_SECONDS
        )


def kill_taskmanager(stack: OwnStack) -> float:
    """Kill the TaskManager and start it again at once."""
    killed_at = _kill(stack, "taskmanager")
    stack.start("taskmanager")
    return Flink(stack).seconds_to_checkpoint(killed_at)


def kill_taskmanager_with_spare(stack: OwnStack) -> float:
    """Kill the TaskManager that runs the tasks; the other one takes over."""
    flink = Flink(stack)
    wait_until(lambda: flink.taskmanagers() == 2, "the spare TaskManager", seconds=_LIMIT_SECONDS)
    name = working_taskmanager(stack.settings.typed.flink_rest, flink.job())
    seconds = flink.seconds_to_checkpoint(_kill(stack, name))
    stack.start(name)
    return seconds


def kill_jobmanager(stack: OwnStack) -> float:
    """Kill the only JobManager, start it, and restore the job, as a person would."""
    killed_at = _kill(stack, "jobmanager")
    stack.start("jobmanager")
    stack.backend.up()
    return Flink(stack).seconds_to_checkpoint(killed_at)


def kill_leading_jobmanager(stack: OwnStack) -> float:
    """Kill the JobManager that leads; the standby takes over."""
    name = _scene(stack).filled("{leading}")
    seconds = Flink(stack).seconds_to_checkpoint(_kill(stack, name))
    stack.start(name)
    return seconds


def kill_synchronizer(stack: OwnStack) -> float:
    """Kill the Spark driver and start it again at once."""
    killed_at = _kill(stack, "spark")
    stack.start("spark")
    commits = stack.home.root / "checkpoints" / "spark" / stack.settings.typed.query() / "commits"

    def committed() -> float | None:
        times = (file.stat().st_mtime for file in commits.iterdir() if file.name.isdigit())
        return min((at for at in times if at > killed_at), default=None)

    return wait_until(committed, "a committed batch after the kill", seconds=_LIMIT_SECONDS) - killed_at


AS_IT_COMES: Mapping[str, Fault] = {
    "TaskManager, started again": kill_taskmanager,
    "JobManager, started again, job restored": kill_jobmanager,
    "synchronizer, started again": kill_synchronizer,
}
WITH_SPARES: Mapping[str, Fault] = {
    "TaskManager, a spare takes over": kill_taskmanager_with_spare,
    "JobManager, the standby takes over": kill_leading_jobmanager,
}


def _kill(stack: OwnStack, name: str) -> float:
    killed_at = time.time()
    stack.backend.kill(stack.service(name))
    return killed_at


def _scene(stack: OwnStack) -> Scene:
    """The stack as the fault matrix sees it: it knows who works and who leads."""
    return Scene(stack.home.root, Timeline(stack.home.root), stack.stack)


def _judge(stack: OwnStack) -> None:
    """Settle, and raise StackError unless both pipelines hold."""
    stack.stop("generator")
    stack.stack.settle()
    outcome = stack.stack.verdict().outcome
    if outcome is not Outcome.HOLDS:
        raise StackError(f"the verdict is {outcome.value}: not a valid measurement", 1)


def measure(faults: Mapping[str, Fault], settings: Mapping[str, str], rounds: int) -> dict[str, list[float]]:
    """Run the faults in turn on a separate stack; returns seconds by fault."""
    seconds: dict[str, list[float]] = {name: [] for name in faults}
    with own_stack(settings) as stack:
        stack.backend.up()
        for number in range(rounds):
            for name, fault in faults.items():
                Flink(stack).wait_until_steady()
                seconds[name].append(fault(stack))
                say(f"round {number + 1} of {rounds}, {name}: {seconds[name][-1]:.1f} s")
        Flink(stack).wait_until_steady()
        _judge(stack)
    return seconds


def show(title: str, seconds: Mapping[str, Sequence[float]]) -> None:
    """Print a table of medians."""
    row(_WIDTHS, title, "seconds", "spread")
    for name, figures in seconds.items():
        row(_WIDTHS, name, *median_and_spread(figures))


def measure_both(rounds: int) -> None:
    """Measure as it comes, and with spares."""
    show(f"SIGKILL, {rounds} rounds; the verdict holds", measure(AS_IT_COMES, {}, rounds))
    show("with a spare TaskManager and a standby JobManager", measure(WITH_SPARES, _SPARES, rounds))


if __name__ == "__main__":
    run_benchmark("recovery.sh", measure_both, ROUNDS="5")
