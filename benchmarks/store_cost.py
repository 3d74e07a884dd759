"""Requests at the object store for a checkpoint and for a micro-batch of the small cluster, and a checkpoint's seconds.

Usage: python -m benchmarks.store_cost [VISITS_PER_SECOND [NUMBER]]

Visits come at a fixed rate, so that there is state: below 20 KB Flink keeps it in the checkpoint's metadata. All slots
of the cluster are used, and each has a partition. First the windowing job alone, then the synchronizer alone.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator

from benchmarks.cluster_runs import BROKER, DRIVER, STORE, TASKMANAGER, WORKER, Side, batches_of
from benchmarks.job_times import Checkpoint, ended, submitted
from benchmarks.own_stack import own_stack, run_benchmark
from benchmarks.store_requests import Requests, requests
from benchmarks.table import row
from faultline.messages import say
from faultline.ports import free_ports
from faultline.settings import ROOT, read_env_file
from faultline.stack.errors import StackError
from faultline.storage.batches import SINK_LOG
from faultline.storage.data import spark_outputs
from faultline.storage.location import Location
from faultline.storage.reading import names
from faultline.verdict.spark.sink_log import read_sink_log
from faultline.waiting import wait_until

SLOTS = 8
"""Two TaskManagers with four each (flink_job/conf/config.yaml)."""
_TRIGGER = "2 seconds"
_FULL_SECONDS = 20
"""After so many of event time, windows close as fast as they open, and the state no longer grows."""
_FILL_SECONDS = 600
_LIMIT_SECONDS = 300.0
_WIDTHS = "{:<44} {:>9} {:>9} {:>11} {:>11}"


@contextlib.contextmanager
def visits(side: Side, rate: int) -> Iterator[None]:
    """Send visits at a rate, beside what is done in this context. Raises StackError when that ended."""
    with side.stack.filling(rate * _FILL_SECONDS, rate) as sending:
        yield
        if not sending.running:
            raise StackError(f"the visits ended too early: {sending.last_line()}", 1)


def of_checkpoints(side: Side, port: int, rate: int, number: int) -> tuple[Requests, float]:
    """Requests for so many checkpoints of the windowing job, and the median of their seconds."""
    job = submitted(side.stack)
    seen: dict[int, Checkpoint] = {}

    def newest() -> int:
        """The number of the newest complete checkpoint; Flink keeps the last ten in its answer."""
        seen.update((each.number, each) for each in ended(job.statistics()))
        return max((number for number, each in seen.items() if each.complete), default=0)

    def wait_for(checkpoint: int) -> None:
        wait_until(lambda: newest() >= checkpoint, f"checkpoint {checkpoint}", seconds=_LIMIT_SECONDS)

    with visits(side, rate):
        interval = side.stack.settings.typed.number("FLINK_CHECKPOINT_INTERVAL_MS") / 1000
        wait_for(newest() + round(_FULL_SECONDS / interval) + 2)
        first = newest()
        before = requests(port)
        wait_for(first + number)
        found = requests(port) - before
    done = [seen[each] for each in range(first + 1, first + number + 1)]
    if not all(each.complete for each in done):
        raise StackError(f"{number} checkpoints after {first} were not all completed: not a valid measurement", 1)
    size = statistics.median(each.full_bytes for each in done)
    say(f"checkpoints {first + 1} to {first + number}, {size / 1e6:.1f} MB each")
    job.cancel()
    return found, statistics.median(each.seconds for each in done)


def bytes_of_an_entry(output: Location) -> float:
    """Mean size of a file's entry in the sink's log: of each of its files, the lines below the version."""
    log = output / SINK_LOG
    files = [log / name for name in names(log) if name.removesuffix(".compact").isdigit()]
    entries = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    return statistics.mean(len(line) + 1 for line in entries)


def of_batches(side: Side, port: int, rate: int, number: int) -> tuple[Requests, int, float]:
    """Requests for so many micro-batches, how many files these have, and the bytes of a file's entry in the sink's log.

    Raises StackError when files are missing.
    """
    stack = side.stack
    with visits(side, rate):
        stack.start(DRIVER, arguments=("--trigger", _TRIGGER))

        def batches() -> dict[int, int]:
            return {batch.number: batch.files for batch in batches_of(stack)}

        # The first one has everything that was there.
        wait_until(lambda: len(batches()) > 1, "the first two batches", seconds=_LIMIT_SECONDS)
        first = max(batches())
        before = requests(port)
        wait_until(lambda: max(batches()) >= first + number, f"{number} batches", seconds=_LIMIT_SECONDS)
        found = requests(port) - before
    stack.stop(DRIVER)
    every = batches()
    output = spark_outputs(stack.settings.typed) / stack.settings.typed.query()
    log = read_sink_log(output)
    # The stop may have come in the middle of one more batch.
    written = sum(entry.batch <= max(every) for entry in log.entries) if log else 0
    if written != sum(every.values()):
        raise StackError(f"{written} files were written, {sum(every.values())} expected: not a valid measurement", 1)
    files = sum(every[batch] for batch in range(first + 1, first + number + 1))
    return found, files, bytes_of_an_entry(output)


def measure(rate: int, number: int) -> None:
    """Count on a small cluster, and print the table. Raises StackError when a measurement is not valid."""
    settings = {**read_env_file(ROOT / ".env.cluster"), "TOPIC_PARTITIONS": str(SLOTS), "FLINK_PARALLELISM": str(SLOTS)}
    with own_stack(settings) as stack:
        side = Side("cluster", stack, [])
        [port] = free_ports("127.0.0.1", 1)
        stack.start(*side.names(BROKER), *side.names("zookeeper"))
        stack.start(STORE, arguments=("--metrics-port", str(port)))
        stack.tool("faultline.services.store.bucket")
        stack.topics()
        stack.start(*side.names("jobmanager"), *side.names(TASKMANAGER))
        row(_WIDTHS, f"requests at the store, {rate} visits/s", "writes", "reads", "writes each", "reads each")
        found, seconds = of_checkpoints(side, port, rate, number)
        _show(f"{number} checkpoints of {SLOTS} slots", found, number * SLOTS)
        print(
            f"a checkpoint took {seconds:.2f} s until its last task had answered, as the median of {number}", flush=True
        )
        stack.stop(*side.names(TASKMANAGER), *side.names("jobmanager"))
        stack.start(*side.names("spark-master"), *side.names(WORKER))
        found, files, entry = of_batches(side, port, rate, number)
        _show(f"{number} micro-batches, {files} files", found, files)
        print(f"a file takes {entry:.0f} bytes in the sink's log", flush=True)


def _show(title: str, found: Requests, units: int) -> None:
    row(_WIDTHS, title, found.writes, found.reads, f"{found.writes / units:.2f}", f"{found.reads / units:.2f}")


if __name__ == "__main__":
    run_benchmark("store.sh", measure, VISITS_PER_SECOND="4000", NUMBER="10")
