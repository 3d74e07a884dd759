"""How work spreads over the small cluster, and what a visit costs there, beside the same on a single machine.

Usage: python -m benchmarks.cluster [RECORDS [ROUNDS]]

Two stacks with the same visits: one of each service, and the profile `cluster`. In each of ROUNDS rounds both pipelines
read a fifth of the visits and all of them, on one stack after the other, so that a slow minute hits both. A first round
over everything warms the JVMs that stay, and is not counted; Spark's start anew with each run, on both sides.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import cluster_runs
from benchmarks.cluster_runs import BROKER, DRIVER, PARALLELISM, STORE, TASKMANAGER, WORKER, Run, Side
from benchmarks.cluster_table import Pair, missed, show_costs, show_costs_heading, show_shares
from benchmarks.flink_runs import topic_of
from benchmarks.own_stack import OwnStack, exit_code_of, own_stack
from contract.settings import ROOT, read_env_file
from stack.arguments import count
from stack.errors import StackError
from stack.messages import say
from stack.ports import free_ports
from stack.services import LOCAL_PORTS

PARTITIONS = 8
"""A multiple of the tasks, and enough that a step over partitions spreads."""
_SHARE = 5
_MISSED = 3
_FLINK = ("jobmanager", TASKMANAGER)
_SPARK = ("spark-master", WORKER)

Pipeline = Callable[[Side, str, str, int], Run]
Pairs = Mapping[str, Sequence[Pair]]
"""Runs of a pipeline, by the side's name, a pair for each round."""


@contextlib.contextmanager
def both_sides() -> Iterator[tuple[Side, Side]]:
    """Two stacks, neither with services yet."""
    number = len(LOCAL_PORTS)
    # All at once: ports of a stack that does not listen yet look free to the other.
    ports = free_ports("127.0.0.1", 2 * number)
    single, cluster = (
        {**dict(zip(LOCAL_PORTS, map(str, chosen), strict=True)), "TOPIC_PARTITIONS": str(PARTITIONS), **settings}
        for chosen, settings in ((ports[:number], {}), (ports[number:], read_env_file(ROOT / ".env.cluster")))
    )
    with own_stack(single) as one, own_stack(cluster) as many:
        yield Side("single", one, [many.mark]), Side("cluster", many, [one.mark])


def start(side: Side, *families: str) -> None:
    """Start all copies of services, and the bucket once its store answers."""
    for family in families:
        side.stack.start(*side.names(family))
        if family == STORE and side.names(STORE):
            side.stack.tool("object_store.bucket")


def stop(side: Side, *families: str) -> None:
    """Stop all copies of services."""
    for family in families:
        side.stack.stop(*side.names(family))


def fill(side: Side, records: int) -> Pair:
    """Fill both topics; returns what that cost, as runs without readers."""
    runs = []
    for share in (_SHARE, 1):
        stack: OwnStack = side.stack.changed({"VISITS_TOPIC": topic_of(share)})
        stack.topics()
        before = side.seconds()
        wanted = records // share
        say(f"{side.name}: filling {topic_of(share)} with {wanted} visits ...")
        acknowledged = int(stack.tool("benchmarks.fill", str(wanted)))
        if acknowledged != wanted:
            raise StackError(f"{acknowledged} visits of {wanted} were acknowledged: not a valid measurement", 1)
        runs.append(Run(wanted, side.since(before), {}))
    return Pair(*runs)


def rounds_of(name: str, pipeline: Pipeline, sides: Sequence[Side], records: int, rounds: int, *, warm: bool) -> Pairs:
    """Run a pipeline in turn on both sides; `warm`: with a round before, which is not counted."""
    pairs: dict[str, list[Pair]] = {side.name: [] for side in sides}
    for number in range(0 if warm else 1, rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            runs = []
            for share in (_SHARE, 1) if number else (1,):
                say(f"round {number} of {rounds}, {name}, {side.name}, {records // share} visits ...")
                runs.append(pipeline(side, f"{name}-{number}-{share}", topic_of(share), records // share))
            if number:
                pairs[side.name].append(Pair(*runs))
    return pairs


def measure(records: int, rounds: int) -> int:
    """Measure both pipelines and print the table; returns the exit code. Raises StackError when it is not valid."""
    with both_sides() as sides:
        for side in sides:
            start(side, BROKER, "zookeeper", STORE)
        written = {side.name: [fill(side, records)] for side in sides}
        for side in sides:
            start(side, *_FLINK)
        windows = rounds_of("windows", cluster_runs.flink, sides, records, rounds, warm=True)
        for side in sides:
            stop(side, *reversed(_FLINK))
            start(side, *_SPARK)
        lines = rounds_of("lines", cluster_runs.spark, sides, records, rounds, warm=False)
        return show(records, rounds, sides, {"writing": written, "windows": windows, "lines": lines})


def show(records: int, rounds: int, sides: Sequence[Side], measured: Mapping[str, Pairs]) -> int:
    """Print the table; returns the exit code."""
    cluster = sides[1]
    print(f"{records} visits, {PARTITIONS} partitions, {rounds} rounds; {PARALLELISM} tasks of a step on each side\n")
    share = max(
        show_shares(title, [pair.full for pair in measured[key]["cluster"]], cluster.names(family))
        for title, key, family in (("windowing job", "windows", TASKMANAGER), ("synchronizer", "lines", WORKER))
    )
    print()
    show_costs_heading("CPU seconds per million visits")

    def costs(title: str, key: str, *families: str, single_too: bool = True) -> float:
        figures = [
            [
                pair.per_million(name for family in families for name in side.names(family))
                for pair in measured[key][side.name]
            ]
            for side in sides
        ]
        return show_costs(title, figures[0] if single_too else [], figures[1])

    ratios = {
        "the TaskManagers need": costs("TaskManagers", "windows", TASKMANAGER),
        "driver and executors need": costs("driver and executors", "lines", DRIVER, WORKER),
    }
    for key in measured:
        costs(f"brokers, {key}", key, BROKER)
    for key in ("windows", "lines"):
        costs(f"object store, {key}", key, STORE, single_too=False)
    if any(
        pair.full.disturbed or pair.small.disturbed
        for key in ("windows", "lines")
        for side in measured[key].values()
        for pair in side
    ):
        print("disturbed: another program used the machine meanwhile")
    lines = missed(share, ratios)
    print("\n".join(lines) if lines else f"every verdict holds; the greatest share is {share:.2f}")
    return _MISSED if lines else 0


def main() -> int:
    """Run the command line; returns the exit code."""
    codes = [0]

    def chosen() -> None:
        records, rounds = [*sys.argv[1:], *("1000000", "3")[len(sys.argv) - 1 :]]
        codes.append(measure(count(records, "RECORDS"), count(rounds, "ROUNDS")))

    return exit_code_of("cluster.sh", chosen) or codes[-1]


if __name__ == "__main__":
    sys.exit(main())
