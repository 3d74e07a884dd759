"""One run of a pipeline over a whole topic, on one machine or on the small cluster: which service did how much."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.cpu import Disturbance, Threads, seconds_by_name, seconds_by_service, threads_of
from benchmarks.flink_runs import settings_of_run, wait_until_quiet
from benchmarks.job_times import READ_SECONDS, submitted
from benchmarks.own_stack import OwnStack
from benchmarks.spread import records_by_executor, records_by_taskmanager, worker_of
from faultline.copies import setting_of
from faultline.probes.spark_application import application
from faultline.stack.backend import RUNNING
from faultline.stack.errors import StackError
from faultline.stack.services import copies
from faultline.waiting import wait_until

PARALLELISM = 2
"""Tasks of each step of the windowing job, and cores of the synchronizer, on either side."""
DRIVER, WORKER, TASKMANAGER, BROKER, STORE = "spark", "spark-worker", "taskmanager", "kafka", "store"
SENDING = "s3a-transfer-fa"
"""Threads that send files to the object store, by the first 15 characters of their names (Hadoop's S3AFileSystem)."""
_BATCH = re.compile(r"synchronizer: batch (\d+): (.*), (\d+) rows, ")
_RANGE = re.compile(r"\[(\d+), (\d+)\)")
_WHOLE_LOG = 1_000_000
_BATCHES = 4
"""Of the synchronizer; an even number."""
_LEAST_SECONDS = 0.1
_ALL_TASKS = 100_000


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
        return seconds_by_name(before, self.threads(*families))

    def disturbance(self) -> Disturbance:
        """A watch on other programs; an idle stack beside this one is none."""
        return Disturbance(self.stack.mark, *self._others)


class Batch(NamedTuple):
    """A batch of the synchronizer: its number, the partitions with visits, each of which has a file, and its rows."""

    number: int
    files: int
    rows: int


def batches_in(log: str) -> list[Batch]:
    """Read the lines of the synchronizer's log, one for each batch."""
    return [
        Batch(int(number), sum(first != end for first, end in _RANGE.findall(ranges)), int(rows))
        for number, ranges, rows in _BATCH.findall(log)
    ]


def batches_of(stack: OwnStack) -> list[Batch]:
    """All batches of a stack's synchronizer so far."""
    return batches_in(stack.backend.log(stack.service(DRIVER), _WHOLE_LOG))


def flink(side: Side, name: str, topic: str, records: int) -> Run:
    """Run the windowing job over the topic, judge and cancel it, and measure the second half: the first warms its code.

    Raises StackError when the run is not valid.
    """
    stack = side.stack.changed(settings_of_run(name, topic, PARALLELISM))
    stack.topics()
    disturbance = side.disturbance()
    job = submitted(stack)
    looks = [0, 0]

    def just_passed_half() -> bool:
        # The counter is a second old at most, and new where it has just changed.
        looks[:] = looks[1], job.records_read()
        return looks[1] >= records // 2 and looks[1] != looks[0]

    wait_until(just_passed_half, f"{side.name} to read {records // 2} records", seconds=READ_SECONDS, every=0.05)
    before, threads, first = side.seconds(), side.threads(TASKMANAGER), looks[1]
    job.wait_until_read(records)
    wait_until_quiet(stack, side.names(TASKMANAGER))
    cpu, disturbed = side.since(before), disturbance.disturbed()
    busy = side.threads_since(threads, TASKMANAGER)
    job.require_read(records)
    by_reader = records_by_taskmanager(job.step(0), "write-records")
    counted = records_by_taskmanager(job.step(-1), "read-records")
    if first >= records or sum(by_reader.values()) != records:
        raise StackError(f"{name} has read {by_reader} of {records} records: not a valid measurement", 1)
    stack.require_right("flink", "--as-is")
    job.cancel()
    return Run(records - first, cpu, by_reader, counted, disturbed, busy)


def spark(side: Side, name: str, topic: str, records: int) -> Run:
    """Run the synchronizer over the topic in _BATCHES batches, and measure the second half: the first warms its JVMs.

    Raises StackError when the run is not valid.
    """
    stack = side.stack.changed({"SPARK_QUERY_NAME": name, "VISITS_TOPIC": topic})
    row = stack.service(DRIVER)
    earlier = len(batches_of(stack))
    disturbance = side.disturbance()
    # Its share is rounded for each partition: a little more, so that no further batch is needed.
    batch = records // _BATCHES + stack.settings.typed.number("TOPIC_PARTITIONS")
    warm = _BATCHES // 2 * batch
    # When all is read it still answers.
    stack.backend.start(row, ("--trigger", "1 second", "--max-offsets-per-trigger", str(batch)))

    def batches() -> list[int]:
        found = [batch.rows for batch in batches_of(stack)[earlier:]]
        if sum(found) < records and stack.backend.state(row) != RUNNING:
            raise StackError(f"the synchronizer of {side.name} ended: {stack.backend.log(row, 1)}", 1)
        return found

    warmed = f"{side.name} to write {warm} records"
    wait_until(lambda: len(batches()) >= _BATCHES // 2, warmed, seconds=READ_SECONDS, every=0.05)
    before, threads, first = side.seconds(), side.threads(DRIVER, WORKER), sum(batches())
    wait_until(lambda: sum(batches()) >= records, f"{side.name} to write {records} records", seconds=READ_SECONDS)
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
    stack.require_right("spark", "--as-is", written=records)
    return Run(records - first, cpu, read, disturbed=disturbed, threads=busy)


def _read_by_worker(stack: OwnStack) -> dict[str, int]:
    """Records by the service that read them: a worker, or the driver itself."""
    values, settings = stack.settings.values, stack.settings.typed
    workers = {int(values[setting_of("SPARK_WORKER", "UI_PORT", row.copy)]): row.name for row in copies(WORKER, values)}
    tasks = [
        task
        for stage in application(settings, "stages")
        for task in application(
            settings, "stages", f"{stage['stageId']}", f"{stage['attemptId']}", f"taskList?length={_ALL_TASKS}"
        )
    ]
    names = {each["id"]: worker_of(each, workers) or DRIVER for each in application(settings, "allexecutors")}
    # A worker whose executor got nothing has a share, too: none.
    found = dict.fromkeys(workers.values(), 0)
    for executor, records in records_by_executor(tasks).items():
        found[names[executor]] = found.get(names[executor], 0) + records
    return found
