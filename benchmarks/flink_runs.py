"""One run of a Flink job over the whole topic: what it cost the TaskManager, and what it wrote."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.cpu import Disturbance, seconds_by_name, service_seconds, threads_of
from benchmarks.job_times import JOB, READ_SECONDS, submitted
from benchmarks.own_stack import OwnStack
from benchmarks.table import median_and_spread, row, said
from faultline.messages import say
from faultline.waiting import wait_until

_QUIET_CORES = 0.15
"""A TaskManager that uses less has nothing to do but its checkpoints."""
_LOOK_SECONDS = 2.0
_TASKMANAGER = "taskmanager"


@dataclass(frozen=True)
class Contender:
    """A job to measure.

    `flags`: of flink_job/submit.py; `share`: it reads one in so many records, since it is slow; `judge`: the verdict's
    name for it.
    """

    name: str
    program: str
    flags: tuple[str, ...] = ()
    share: int = 1
    judge: str = "flink"
    parallelism: int = 1


@dataclass(frozen=True)
class Cost:
    """The cost of one run: CPU seconds of so many records, records out, and the verdict on them."""

    cpu_seconds: float
    records: int
    written: int
    outcome: str
    disturbed: bool = False
    threads: Mapping[str, float] = field(default_factory=dict)

    @property
    def per_million(self) -> float:
        """CPU seconds per million records."""
        return self.cpu_seconds * 1e6 / self.records


OURS = Contender("windows", JOB, ("--mode", "exactly-once"))
"""The windowing job."""


def topic_of(share: int) -> str:
    """The topic that holds one in `share` of the records."""
    return "visits" if share == 1 else f"visits_{share}"


def fill_topics(stack: OwnStack, records: int, *shares: int) -> None:
    """Fill the topics of these shares of the records. Raises StackError when not all were acknowledged."""
    for share in shares:
        say(f"filling {topic_of(share)} with {records // share} visits ...")
        stack.changed({"VISITS_TOPIC": topic_of(share)}).fill(records // share)


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
    job = submitted(changed, contender.program, *contender.flags)
    job.wait_until_read(records)
    wait_until_quiet(stack)
    job.require_read(records)
    spent = service_seconds(stack.mark, _TASKMANAGER) - before
    busy = seconds_by_name(threads, threads_of(stack.mark, _TASKMANAGER))
    disturbed = disturbance.disturbed()
    # With --as-is: the last windows stay open, since closing visits would change the number of records.
    judged = changed.judge(contender.judge, "--as-is")
    job.cancel()
    return Cost(spent, records, judged.observed, judged.outcome, disturbed, busy)


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

    wait_until(quiet, "the TaskManager to be quiet", seconds=READ_SECONDS)


_WIDTHS = "{:<34} {:>10} {:>10} {:>9} {:>13} {:>7}  {}"


def show_heading(title: str) -> None:
    """Print the heading of the rows of `show_costs`."""
    row(_WIDTHS, title, "records in", "out", "CPU s/M", "spread", "ratio", "verdict")


def show_costs(name: str, records: int, costs: Sequence[Cost], base: Sequence[Cost]) -> None:
    """Print the costs of the rounds that read `records` in all, beside those of the same rounds of `base`: medians."""
    ratios = [cost.per_million / other.per_million for cost, other in zip(costs, base, strict=True)]
    row(
        _WIDTHS, name, records, costs[-1].written, *median_and_spread([cost.per_million for cost in costs]),
        f"{statistics.median(ratios):.2f}", said(costs[-1].outcome, disturbed=any(cost.disturbed for cost in costs)),
    )  # fmt: skip
