"""How work spreads over the small cluster, and what a visit costs there, beside the same on a single machine.

Usage: python -m benchmarks.cluster [RECORDS [ROUNDS]]

Two stacks with the same visits: one of each service, and the profile `cluster`. They work in turn in each of ROUNDS
rounds, so that a slow minute hits both. What a visit costs is measured on warm JVMs: of the windowing job as the
difference of a run over all visits and one over half of them, of the synchronizer as its second batch.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import cluster_runs
from benchmarks.cluster_runs import BROKER, DRIVER, PARALLELISM, STORE, TASKMANAGER, WORKER, Run, Side
from benchmarks.cluster_table import Pair, missed, show_costs, show_costs_heading, show_shares, show_threads
from benchmarks.flink_runs import topic_of
from benchmarks.own_stack import OwnStack, exit_code_of, own_stack
from contract.settings import ROOT, read_env_file
from stack.arguments import count
from stack.errors import StackError
from stack.messages import say
from stack.ports import free_ports
from stack.services import LOCAL_PORTS

PARTITIONS = 4
"""A multiple of the tasks. Few, so that a file of a micro-batch is as large as in docs/scaling_out.md."""
_SHARE = 2
"""Half of the visits, so that the JVMs have compiled the job in either run."""
_MISSED = 3
_FLINK = ("jobmanager", TASKMANAGER)
_SPARK = ("spark-master", WORKER)

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


def windows(sides: Sequence[Side], records: int, rounds: int) -> Pairs:
    """Run the windowing job in turn on both sides; a first round warms the TaskManagers, and is not counted."""
    pairs: dict[str, list[Pair]] = {side.name: [] for side in sides}
    for number in range(rounds + 1):
        for side in _in_turn(sides, number):
            runs = []
            for share in (_SHARE, 1) if number else (1,):
                say(f"round {number} of {rounds}, windowing job, {side.name}, {records // share} visits ...")
                runs.append(cluster_runs.flink(side, f"windows-{number}-{share}", topic_of(share), records // share))
                say(f"   {runs[-1].words()}")
            if number:
                pairs[side.name].append(Pair(*runs))
    return pairs


def lines(sides: Sequence[Side], records: int, rounds: int) -> Pairs:
    """Run the synchronizer in turn on both sides, with JVMs of its own each time, which it warms itself."""
    pairs: dict[str, list[Pair]] = {side.name: [] for side in sides}
    for number in range(1, rounds + 1):
        for side in _in_turn(sides, number):
            say(f"round {number} of {rounds}, synchronizer, {side.name}, {records} visits ...")
            run = cluster_runs.spark(side, f"lines-{number}", topic_of(1), records)
            say(f"   {run.words()}")
            pairs[side.name].append(Pair(Run(0, {}, {}), run))
    return pairs


def _in_turn(sides: Sequence[Side], number: int) -> Sequence[Side]:
    """Each side is the first one in every other round."""
    return sides if number % 2 else sides[::-1]


def measure(records: int, rounds: int) -> int:
    """Measure both pipelines and print the table; returns the exit code. Raises StackError when it is not valid."""
    with both_sides() as sides:
        for side in sides:
            start(side, BROKER, "zookeeper", STORE)
        written = {side.name: [fill(side, records)] for side in sides}
        for side in sides:
            start(side, *_FLINK)
        counted = windows(sides, records, rounds)
        for side in sides:
            stop(side, *reversed(_FLINK))
            start(side, *_SPARK)
        copied = lines(sides, records, rounds)
        return show(records, rounds, sides, {"writing": written, "windows": counted, "lines": copied})


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

    def of_side(side: Side, key: str, *families: str) -> list[float]:
        names = [name for family in families for name in side.names(family)]
        return [pair.per_million(names) for pair in measured[key][side.name]]

    def costs(title: str, key: str, *families: str, single_too: bool = True) -> float:
        figures = [of_side(side, key, *families) for side in sides]
        return show_costs(title, figures[0] if single_too else [], figures[1])

    ratios = {"the TaskManagers": costs("TaskManagers", "windows", TASKMANAGER)}
    show_threads(*measured["windows"].values())
    ratios["driver and executors"] = costs("driver and executors", "lines", DRIVER, WORKER)
    for key in measured:
        costs(f"brokers, {key}", key, BROKER)
    show_costs(
        "brokers, in all",
        *([sum(statistics.median(of_side(side, key, BROKER)) for key in measured)] for side in sides),
    )
    for key in ("windows", "lines"):
        costs(f"object store, {key}", key, STORE, single_too=False)
    if any(
        pair.full.disturbed or pair.small.disturbed
        for key in ("windows", "lines")
        for side in measured[key].values()
        for pair in side
    ):
        print("disturbed: another program used the machine meanwhile")
    misses = missed(share, ratios)
    print("\n".join(misses) if misses else f"every verdict holds; the greatest share is {share:.2f}")
    return _MISSED if misses else 0


def main() -> int:
    """Run the command line; returns the exit code."""
    codes = [0]

    def chosen() -> None:
        records, rounds = [*sys.argv[1:], *("1600000", "2")[len(sys.argv) - 1 :]]
        codes.append(measure(count(records, "RECORDS"), count(rounds, "ROUNDS")))

    return exit_code_of("cluster.sh", chosen) or codes[-1]


if __name__ == "__main__":
    sys.exit(main())
