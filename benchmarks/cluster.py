"""Benchmark of the spread of work over the small cluster, and of the cost of a visit there and on a single machine.

Usage: python -m benchmarks.cluster [RECORDS [ROUNDS]]

Two stacks with the same visits: one of each service, and the profile `cluster`. They work in turn in each of ROUNDS
rounds, so that a slow minute hits both. The cost of a visit is measured on warm JVMs: in the second half of each run.
The costs of the threads that send files to the object store, and of the store itself, are stated apart: one machine
has neither.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import cluster_runs
from benchmarks.cluster_runs import BROKER, DRIVER, PARALLELISM, SENDING, STORE, TASKMANAGER, WORKER, Run, Side
from benchmarks.cluster_table import missed, show_costs, show_costs_heading, show_shares, show_threads
from benchmarks.flink_runs import topic_of
from benchmarks.own_stack import own_stack, run_benchmark
from faultline.messages import say
from faultline.settings import ROOT, read_env_file

PARTITIONS = 4
"""A multiple of the tasks. Few, so that a file of a micro-batch is as large as in docs/scaling_out.md."""
TOPIC = topic_of(share=1)
_MISSED = 3
_FLINK = ("jobmanager", TASKMANAGER)
_SPARK = ("spark-master", WORKER)

Runs = Mapping[str, Sequence[Run]]
"""Runs of a pipeline by the side's name, one for each round."""


@contextlib.contextmanager
def both_sides() -> Iterator[tuple[Side, Side]]:
    """Two stacks, neither with services yet."""
    single = {"TOPIC_PARTITIONS": str(PARTITIONS)}
    with own_stack(single) as one, own_stack({**single, **read_env_file(ROOT / ".env.cluster")}) as many:
        yield Side("single", one, [many.mark]), Side("cluster", many, [one.mark])


def start(side: Side, *families: str) -> None:
    """Start all copies of services, and the bucket once its store answers."""
    for family in families:
        side.stack.start(*side.names(family))
        if family == STORE and side.names(STORE):
            side.stack.tool("faultline.services.store.bucket")


def stop(side: Side, *families: str) -> None:
    """Stop all copies of services."""
    for family in families:
        side.stack.stop(*side.names(family))


def fill(side: Side, records: int) -> Run:
    """Fill the topic; returns what that cost, as a run without readers."""
    side.stack.topics()
    before = side.seconds()
    say(f"{side.name}: filling {TOPIC} with {records} visits ...")
    side.stack.tool("benchmarks.fill", str(records))
    return Run(records, side.since(before), {})


def in_turn(sides: Sequence[Side], rounds: int, title: str, run: Callable[[Side, int], Run]) -> Runs:
    """Run a pipeline in turn on both sides; each is the first one in every other round."""
    found: dict[str, list[Run]] = {side.name: [] for side in sides}
    for number in range(1, rounds + 1):
        for side in sides if number % 2 else sides[::-1]:
            say(f"round {number} of {rounds}, {title}, {side.name} ...")
            found[side.name].append(run(side, number))
            say(f"   second half: {found[side.name][-1].words()}")
    return found


def measure(records: int, rounds: int) -> int:
    """Measure both pipelines and print the table; returns the exit code. Raises StackError when it is not valid."""
    with both_sides() as sides:
        for side in sides:
            start(side, BROKER, "zookeeper", STORE)
        written = {side.name: [fill(side, records)] for side in sides}
        for side in sides:
            start(side, *_FLINK)
        # The first round warms the TaskManagers, which stay: it is not counted.
        counted = in_turn(
            sides, rounds + 1, "windowing job",
            lambda side, number: cluster_runs.flink(side, f"windows-{number}", TOPIC, records),
        )  # fmt: skip
        counted = {name: runs[1:] for name, runs in counted.items()}
        for side in sides:
            stop(side, *reversed(_FLINK))
            start(side, *_SPARK)
        copied = in_turn(
            sides, rounds, "synchronizer",
            lambda side, number: cluster_runs.spark(side, f"lines-{number}", TOPIC, records),
        )  # fmt: skip
        return show(records, rounds, sides, {"writing": written, "windows": counted, "lines": copied})


def show(records: int, rounds: int, sides: Sequence[Side], measured: Mapping[str, Runs]) -> int:
    """Print the table; returns the exit code."""
    cluster = sides[1]
    print(f"{records} visits, {PARTITIONS} partitions, {rounds} rounds; {PARALLELISM} tasks of a step on each side\n")
    share = max(
        show_shares(title, measured[key]["cluster"], cluster.names(family))
        for title, key, family in (("windowing job", "windows", TASKMANAGER), ("synchronizer", "lines", WORKER))
    )
    print()
    show_costs_heading("CPU seconds per million visits")

    def of_side(side: Side, key: str, *families: str) -> list[float]:
        names = [name for family in families for name in side.names(family)]
        return [run.per_million(names) for run in measured[key][side.name]]

    def costs(title: str, key: str, *families: str, single_too: bool = True) -> float:
        figures = [of_side(side, key, *families) for side in sides]
        return show_costs(title, figures[0] if single_too else [], figures[1])

    ratios = {"the TaskManagers": costs("TaskManagers", "windows", TASKMANAGER)}
    show_threads(*measured["windows"].values())
    ratios["driver and executors"] = costs("driver and executors", "lines", DRIVER, WORKER)
    show_threads(*measured["lines"].values())
    figures = [of_side(side, "lines", DRIVER, WORKER) for side in sides]
    sending = [run.thread_per_million(SENDING) for run in measured["lines"]["cluster"]]
    show_costs(
        "driver and executors, without sending",
        figures[0], [a - b for a, b in zip(figures[1], sending, strict=True)],
    )  # fmt: skip
    for key in measured:
        costs(f"brokers, {key}", key, BROKER)
    show_costs(
        "brokers, in all",
        *([sum(statistics.median(of_side(side, key, BROKER)) for key in measured)] for side in sides),
    )
    for key in ("windows", "lines"):
        costs(f"object store, {key}", key, STORE, single_too=False)
    if any(run.disturbed for key in ("windows", "lines") for runs in measured[key].values() for run in runs):
        print("disturbed: another program used the machine meanwhile")
    misses = missed(share, ratios)
    print("\n".join(misses) if misses else f"every verdict holds; the greatest share is {share:.2f}")
    return _MISSED if misses else 0


if __name__ == "__main__":
    run_benchmark("cluster.sh", measure, RECORDS="3200000", ROUNDS="2")
