"""One run of a pipeline over a whole topic, on one machine or on the small cluster: which service did how much."""

from __future__ import annotations

import functools
import json
import re
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.cpu import Disturbance, Threads, seconds_by_name, seconds_by_service, threads_of
from benchmarks.flink_runs import LIMIT_SECONDS, records_read, settings_of_run, wait_until_quiet
from benchmarks.own_stack import OwnStack
from benchmarks.spread import records_by_executor, records_by_taskmanager, worker_of
from faultline.copies import setting_of
from faultline.stack.backend import RUNNING
from faultline.stack.errors import StackError
from faultline.stack.services import copies
from faultline.waiting import wait_until
from flink_job.cancel import cancel
from flink_job.rest import call

PARALLELISM = 2
"""Tasks of each step of the windowing job, and cores of the synchronizer, on either side."""
DRIVER, WORKER, TASKMANAGER, BROKER, STORE = "spark", "spark-worker", "taskmanager", "kafka", "store"
SENDING = "s3a-transfer-fa"
"""Threads that send files to the object store, by the first 15 characters of their names (Hadoop's S3AFileSystem)."""
_JOB = "flink_job/stateful_flink_consumer.py"
_BATCH = re.compile(r"synchronizer: batch \d+: .*, (\d+) rows, ")
_NUMBER = re.compile(r"[#0-9/ (\[\]-]+$")
_WHOLE_LOG = 1_000_000
_BATCHES = 4
"""Of the synchronizer; an even number."""
_LEAST_SECONDS = 0.1
_ALL_TASKS = 100_000
_ANSWER_SECONDS = 30


@dataclass(frozen=True)
class Run:
    """The cost of one run, and the services that did the work.

    `visits`: those that `cpu` and `threads` are for. `cpu`: CPU seconds by service. `read`: records by the service that
    read them.
    """

    visits: int
    cpu: Mapping[str, float]
    read: Mapping[str, int]
    counted: Mapping[str, int] = field(default_factory=dict)
    """Rows that came to the windows, by service; none for the synchronizer."""
    disturbed: bool = False
    threads: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by name of the threads of the TaskManagers, or of driver and executors."""

    def seconds(self, services: Iterable[str]) -> float:
        """CPU seconds of these services together."""
        return sum(self.cpu.get(name, 0.0) for name in services)

    def per_million(self, services: Iterable[str]) -> float:
        """CPU seconds of these services per million visits."""
        return self.seconds(services) * 1e6 / self.visits

    def thread_per_million(self, name: str) -> float:
        """CPU seconds of the threads of a name per million visits."""
        return self.threads.get(name, 0.0) * 1e6 / self.visits

    def words(self) -> str:
        """Return the CPU seconds of each service as one line, for the person who waits."""
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.cpu.items() if seconds >= _LEAST_SECONDS)


class Side:
    """One of the two stacks, and the names of its services. `others`: the marks of stacks that run beside it."""

    def __init__(self, name: str, stack: OwnStack, others: Iterable[str]) -> None:
        self.name, self.stack = name, stack
        self._others = tuple(others)

    def names(self, family: str) -> tuple[str, ...]:
        """The services of a family that the stack has."""
        return tuple(row.name for row in copies(family, self.stack.settings.values))

    def seconds(self) -> dict[str, float]:
        """CPU seconds so far, by service."""
        return seconds_by_service(self.stack.mark)

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """CPU seconds since then, by service."""
        return {name: now - before.get(name, 0.0) for name, now in self.seconds().items()}

    def threads(self, *families: str) -> Threads:
        """A look at the threads of all copies of services."""
        return threads_of(self.stack.mark, *(name for family in families for name in self.names(family)))

    def threads_since(self, before: Threads, *families: str) -> dict[str, float]:
        """CPU seconds since then, by the threads' names without numbers."""
        found: dict[str, float] = defaultdict(float)
        for name, seconds in seconds_by_name(before, self.threads(*families)).items():
            found[_NUMBER.sub("", name)] += seconds
        return found

    def disturbance(self) -> Disturbance:
        """A watch on other programs; an idle stack beside this one is none."""
        return Disturbance(self.stack.mark, *self._others)


def flink(side: Side, name: str, topic: str, records: int) -> Run:
    """Run the windowing job over the topic, judge and cancel it, and measure the second half: the first warms its code.

    Raises StackError when the run is not valid.
    """
    stack = side.stack.changed(settings_of_run(name, topic, PARALLELISM))
    stack.topics()
    disturbance = side.disturbance()
    job = stack.ask(stack.service("jobmanager"), "python", "-m", "benchmarks.flink_submit", _JOB).strip()
    base = stack.settings.typed.flink_rest
    read = functools.partial(records_read, base, job)
    looks = [0, 0]

    def just_passed_half() -> bool:
        # The counter is a second old at most, and new where it has just changed.
        looks[:] = looks[1], read()
        return looks[1] >= records // 2 and looks[1] != looks[0]

    wait_until(just_passed_half, f"{side.name} to read {records // 2} records", seconds=LIMIT_SECONDS, every=0.05)
    before, threads, first = side.seconds(), side.threads(TASKMANAGER), looks[1]
    wait_until(lambda: read() >= records, f"{side.name} to read {records} records", seconds=LIMIT_SECONDS)
    wait_until_quiet(stack, side.names(TASKMANAGER))
    cpu, disturbed = side.since(before), disturbance.disturbed()
    busy = side.threads_since(threads, TASKMANAGER)
    steps = [call(base, f"/jobs/{job}/vertices/{each['id']}") for each in call(base, f"/jobs/{job}")["vertices"]]
    by_reader = records_by_taskmanager(steps[0], "write-records")
    if first >= records or read() != records or sum(by_reader.values()) != records:
        raise StackError(f"{name} has read {read()} records of {records}: this is not a valid measurement", 1)
    _judge(stack, name, "flink")
    cancel(base, job)
    return Run(records - first, cpu, by_reader, records_by_taskmanager(steps[-1], "read-records"), disturbed, busy)


def spark(side: Side, name: str, topic: str, records: int) -> Run:
    """Run the synchronizer over the topic in _BATCHES batches, and measure the second half: the first warms its JVMs.

    Raises StackError when the run is not valid.
    """
    stack = side.stack.changed({"SPARK_QUERY_NAME": name, "VISITS_TOPIC": topic})
    row = stack.service(DRIVER)
    earlier = len(_BATCH.findall(stack.backend.log(row, _WHOLE_LOG)))
    disturbance = side.disturbance()
    # Its share is rounded for each partition: a little more, so that no further batch is needed.
    batch = records // _BATCHES + stack.settings.typed.number("TOPIC_PARTITIONS")
    warm = _BATCHES // 2 * batch
    # When all is read it still answers.
    stack.backend.start(row, ("--trigger", "1 second", "--max-offsets-per-trigger", str(batch)))

    def batches() -> list[int]:
        found = [int(rows) for rows in _BATCH.findall(stack.backend.log(row, _WHOLE_LOG))[earlier:]]
        if sum(found) < records and stack.backend.state(row) != RUNNING:
            raise StackError(f"the synchronizer of {side.name} ended: {stack.backend.log(row, 1)}", 1)
        return found

    warmed = f"{side.name} to write {warm} records"
    wait_until(lambda: len(batches()) >= _BATCHES // 2, warmed, seconds=LIMIT_SECONDS, every=0.05)
    before, threads, first = side.seconds(), side.threads(DRIVER, WORKER), sum(batches())
    wait_until(lambda: sum(batches()) >= records, f"{side.name} to write {records} records", seconds=LIMIT_SECONDS)
    cpu, disturbed = side.since(before), disturbance.disturbed()
    busy = side.threads_since(threads, DRIVER, WORKER)
    read = _read_by_worker(stack)
    stack.stop(DRIVER)
    if len(batches()) != _BATCHES or first >= records or sum(batches()) != records or sum(read.values()) != records:
        raise StackError(
            f"{name} has read {sum(read.values())} of {records} records in batches of {batches()}: "
            "not a valid measurement",
            1,
        )
    if _judge(stack, name, "spark") != records:
        raise StackError(f"{name} has not written {records} lines: not a valid measurement", 1)
    return Run(records - first, cpu, read, disturbed=disturbed, threads=busy)


def _read_by_worker(stack: OwnStack) -> dict[str, int]:
    """Records by the service that read them: a worker, or the driver itself."""
    values = stack.settings.values
    root = f"http://127.0.0.1:{values['SPARK_UI_PORT']}/api/v1/applications"
    base = f"{root}/{_asked(root)[0]['id']}"
    workers = {int(values[setting_of("SPARK_WORKER", "UI_PORT", row.copy)]): row.name for row in copies(WORKER, values)}
    tasks = [
        task
        for stage in _asked(f"{base}/stages")
        for task in _asked(f"{base}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length={_ALL_TASKS}")
    ]
    names = {each["id"]: worker_of(each, workers) or DRIVER for each in _asked(f"{base}/allexecutors")}
    # A worker whose executor got nothing has a share, too: none.
    found = dict.fromkeys(workers.values(), 0)
    for executor, records in records_by_executor(tasks).items():
        found[names[executor]] = found.get(names[executor], 0) + records
    return found


def _asked(url: str) -> Any:
    """The driver's answer. Raises StackError when it gives none."""
    try:
        with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as response:
            return json.load(response)
    except (OSError, ValueError) as error:
        raise StackError(f"the synchronizer's driver does not answer at {url}: {error}", 1) from None


def _judge(stack: OwnStack, name: str, pipeline: str) -> int:
    """Judge the output as it is; returns the records observed. Raises StackError unless it holds."""
    outcome, _, observed, *_ = stack.tool("benchmarks.judge", pipeline, "--as-is").split()
    if outcome != "holds":
        raise StackError(f"the verdict on {name} is {outcome}: not a valid measurement", 1)
    return int(observed)
