"""One run of a Flink job over the whole topic: what it cost the TaskManager, and what it wrote."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.cpu import Disturbance, seconds_by_name, service_seconds, threads_of
from benchmarks.own_stack import OwnStack
from faultline.stack.errors import StackError
from faultline.waiting import wait_until
from flink_job.cancel import cancel
from flink_job.rest import call

LIMIT_SECONDS = 1800.0
_QUIET_CORES = 0.15
"""A TaskManager that uses less has nothing to do but its checkpoints."""
_LOOK_SECONDS = 2.0
_TASKMANAGER = "taskmanager"


@dataclass(frozen=True)
class Contender:
    """A job to measure.

    `share`: it reads one in so many records, since it is slow; `judge`: the verdict's name for it.
    """

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    share: int = 1
    judge: str = "flink"
    parallelism: int = 1


@dataclass(frozen=True)
class Cost:
    """The cost of one run: CPU seconds, records in and out, and the verdict on its output."""

    cpu_seconds: float
    records: int
    written: int
    outcome: str
    disturbed: bool
    threads: dict[str, float]

    @property
    def per_million(self) -> float:
        """CPU seconds per million records."""
        return self.cpu_seconds * 1e6 / self.records


def topic_of(share: int) -> str:
    """The topic that holds one in `share` of the records."""
    return "visits" if share == 1 else f"visits_{share}"


def settings_of_run(name: str, topic: str, parallelism: int) -> dict[str, str]:
    """Settings of one run: its own topics for what it writes, its own group and ids."""
    return {
        "VISITS_TOPIC": topic,
        "VISIT_WINDOWS_TOPIC": f"windows-{name}",
        "VISITS_LATE_TOPIC": f"late-{name}",
        "VISITS_REJECTED_TOPIC": f"rejected-{name}",
        "CLASSIC_WINDOWS_TOPIC": f"windows-{name}",
        "CLASSIC_LATE_TOPIC": f"late-{name}",
        "CLASSIC_JOB_NAME": name,
        "FLINK_JOB_NAME": name,
        "FLINK_GROUP_ID": name,
        "FLINK_TRANSACTIONAL_ID_PREFIX": name,
        "FLINK_PARALLELISM": str(parallelism),
    }


def run(stack: OwnStack, contender: Contender, number: int, records: int) -> Cost:
    """Submit the job with its own outputs, wait until it has read everything, judge and cancel it.

    Raises StackError when the source's own counter does not reach the number of records.
    """
    name = f"{contender.name.replace(' ', '-')}-{number}"
    changed = stack.changed(settings_of_run(name, topic_of(contender.share), contender.parallelism))
    changed.topics()
    disturbance = Disturbance(stack.mark)
    before, threads = service_seconds(stack.mark, _TASKMANAGER), threads_of(stack.mark, _TASKMANAGER)
    program = ("python", "-m", "benchmarks.flink_submit", contender.program, *contender.arguments)
    job = changed.ask(changed.service("jobmanager"), *program).strip()
    base = stack.settings.typed.flink_rest
    read = functools.partial(records_read, base, job)
    wait_until(lambda: read() >= records, f"{contender.name} to read {records} records", seconds=LIMIT_SECONDS)
    wait_until_quiet(stack)
    if (found := read()) != records:
        raise StackError(f"{contender.name} has read {found} records of {records}: this is not a valid measurement", 1)
    spent = service_seconds(stack.mark, _TASKMANAGER) - before
    busy = seconds_by_name(threads, threads_of(stack.mark, _TASKMANAGER))
    disturbed = disturbance.disturbed()
    # With --as-is: the last windows stay open, since closing visits would change the number of records.
    outcome, _, observed, *_ = changed.tool("benchmarks.judge", contender.judge, "--as-is").split()
    cancel(base, job)
    return Cost(spent, records, int(observed), outcome, disturbed, busy)


def records_read(base: str, job: str) -> int:
    """Return the counter of the source operator, all its tasks together."""
    vertex = call(base, f"/jobs/{job}")["vertices"][0]["id"]
    path = f"/jobs/{job}/vertices/{vertex}/subtasks/metrics"
    names = [m["id"] for m in call(base, path) if m["id"].startswith("Source__") and m["id"].endswith(".numRecordsIn")]
    if not names:
        return 0
    return int(sum(metric.get("sum", 0) for metric in call(base, f"{path}?get={names[0]}")))


def wait_until_quiet(stack: OwnStack, services: Sequence[str] = (_TASKMANAGER,)) -> None:
    """Wait until the TaskManagers have nothing to do any more: windows are written and committed."""

    def seconds() -> float:
        return sum(service_seconds(stack.mark, service) for service in services)

    last = [time.monotonic(), seconds()]

    def quiet() -> bool:
        elapsed = time.monotonic() - last[0]
        if elapsed < _LOOK_SECONDS:
            return False
        spent = seconds() - last[1]
        last[:] = [time.monotonic(), last[1] + spent]
        return spent < _QUIET_CORES * elapsed * len(services)

    wait_until(quiet, "the TaskManager to be quiet", seconds=LIMIT_SECONDS)
