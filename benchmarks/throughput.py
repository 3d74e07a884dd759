"""CPU time of both pipelines per million visits, beside plain and naive ones, records counted in and out.

Usage: python -m benchmarks.throughput [RECORDS [RUNS]]

The contenders run one after the other in each of RUNS rounds, so that a slow minute hits all of them; an extra first
round warms the JVMs and is not counted. Prints medians, and the spread between the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.cpu import seconds_of_program
from benchmarks.flink_runs import OURS, Contender, Cost, fill_topics, run, show_costs, show_heading, topic_of
from benchmarks.own_stack import OwnStack, own_stack, run_benchmark
from faultline.messages import say
from faultline.stack.errors import StackError

_PARTITIONS = 4
_SLOW_SHARE = 20
_SPARK_SHARE = 5
_SETTINGS = {"TOPIC_PARTITIONS": str(_PARTITIONS)}
_PLAIN = Contender("plain SQL", "benchmarks/jobs/plain_sql.py", judge="classic")
CONTENDERS = (
    OURS,
    Contender("no guarantee", "benchmarks/jobs/no_guarantee.py"),
    _PLAIN,
    Contender("classic", "flink_job/classic.py", ("--mode", "exactly-once"), share=_SLOW_SHARE, judge="classic"),
)
PARALLEL = tuple(replace(OURS, name=f"parallelism {number}", parallelism=number) for number in (1, 2, 4))
_PERF_FIELDS = 9


def consumer_rate(stack: OwnStack, records: int, group: str) -> int:
    """Run Kafka's own consumer test; returns records per second."""
    output = stack.ask(
        stack.service("kafka"), "kafka-consumer-perf-test.sh", "--bootstrap-server", stack.backend.bootstrap_inside,
        "--topic", topic_of(1), "--group", group, "--num-records", str(records), "--timeout", "60000", "--hide-header",
    )  # fmt: skip
    lines = [line.split(",") for line in output.splitlines() if line.count(",") + 1 >= _PERF_FIELDS]
    if int(lines[-1][4]) < records:
        raise StackError(f"the consumer has read {lines[-1][4]} records of {records}: not a valid measurement", 1)
    return int(float(lines[-1][5]))


def flink(stack: OwnStack, records: int, rounds: int) -> None:
    """Measure the Flink jobs and print their table."""
    costs: dict[str, list[Cost]] = {contender.name: [] for contender in (*CONTENDERS, *PARALLEL)}
    for number in range(rounds + 1):
        for contender in (*CONTENDERS, *(PARALLEL if number else ())):
            say(f"round {number} of {rounds}, {contender.name} ...")
            cost = run(stack, contender, number, records // contender.share)
            if contender in (OURS, *PARALLEL) and cost.outcome != "holds":
                raise StackError(f"{contender.name}: the verdict is {cost.outcome}: not a valid measurement", 1)
            if number:
                costs[contender.name].append(cost)
    show_heading(f"{records} visits, {rounds} rounds")
    for contender in (*CONTENDERS, *PARALLEL):
        if contender is PARALLEL[0]:
            print("\nCPU seconds per million visits by task, at parallelism 1, 2 and 4")
        found = costs[contender.name]
        show_costs(contender.name, found[-1].records, found, costs[_PLAIN.name])
        for name, seconds in _by_task(found) if contender in PARALLEL else ():
            print(f"    {name:<30} {seconds:6.1f}")


def _by_task(costs: Sequence[Cost]) -> list[tuple[str, float]]:
    """Threads by what they do, the most expensive first."""
    total: dict[str, float] = {}
    for cost in costs:
        for name, seconds in cost.threads.items():
            total[name] = total.get(name, 0.0) + seconds * 1e6 / cost.records / len(costs)
    return sorted(((n, s) for n, s in total.items() if s >= 0.1), key=lambda pair: -pair[1])


def spark(stack: OwnStack, records: int, rounds: int) -> None:
    """Measure the synchronizer and the naive one and print their table.

    Each reads everything, and a fifth of it: the difference is what records cost, without the start of a JVM.
    """
    root = stack.home.root / "spark-runs"
    small = stack.changed({"VISITS_TOPIC": topic_of(_SPARK_SHARE)})
    found: dict[str, list[Cost]] = {"synchronizer": [], "naive synchronizer": []}
    for number in range(rounds):
        for name, costs in found.items():
            say(f"round {number + 1} of {rounds}, {name} ...")
            seconds, outcome = [], "-"
            for chosen, wanted in ((small, records // _SPARK_SHARE), (stack, records)):
                folder = root / f"{name}-{number}-{wanted}".replace(" ", "-")
                output, checkpoint = folder / "output", folder / "checkpoint"
                places = ("--output", str(output), "--checkpoint", str(checkpoint))
                command = ["python", "-m", "benchmarks.naive_synchronizer", str(output), str(checkpoint)]
                if name == "synchronizer":
                    command = ["python", "-m", "spark_job.visits_json_synchronizer", "--trigger", "available-now"]
                    command += places
                seconds.append(seconds_of_program(name, command, chosen.backend.environment("tools")))
                if (written := _lines_in(output)) != wanted:
                    raise StackError(f"{name} has written {written} lines of {wanted}: not a valid measurement", 1)
                if name == "synchronizer":
                    outcome = chosen.require_right("spark", "--as-is", *places).outcome
            costs.append(Cost(seconds[1] - seconds[0], records - records // _SPARK_SHARE, records, outcome))
    print()
    for name, costs in found.items():
        show_costs(name, records, costs, found["naive synchronizer"])


def _lines_in(output: Path) -> int:
    """Count the lines of all files of an output."""
    lines = 0
    for path in output.rglob("part-*"):
        with path.open("rb") as file:
            lines += sum(1 for _ in file)
    return lines


def measure(records: int, rounds: int) -> None:
    """Measure all, and print the tables. Raises StackError when a measurement is not valid."""
    with own_stack(_SETTINGS) as stack:
        stack.start("kafka")
        fill_topics(stack, records, 1, _SLOW_SHARE, _SPARK_SHARE)
        consumer_rate(stack, records, "cold")
        rate = consumer_rate(stack, records, "warm")
        say(f"Kafka's own consumer reads {rate} records/s: the limit for every other reader")
        stack.start("jobmanager", "taskmanager")
        flink(stack, records, rounds)
        stack.stop("taskmanager", "jobmanager")
        spark(stack, records, rounds)


if __name__ == "__main__":
    run_benchmark("throughput.sh", measure, RECORDS="1000000", RUNS="5")
