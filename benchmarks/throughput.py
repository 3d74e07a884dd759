"""CPU time of both pipelines per million visits, beside plain and naive ones, records counted in and out.

Usage: python -m benchmarks.throughput [RECORDS [RUNS]]

The contenders run one after the other in each of RUNS rounds, so that a slow minute hits all of them; an extra first
round warms the JVMs and is not counted. Prints medians, and the spread between the rounds.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks import spark_runs
from benchmarks.flink_runs import Contender, Cost, run, topic_of
from benchmarks.own_stack import OwnStack, own_stack, row, run_benchmark
from faultline.messages import say
from faultline.stack.errors import StackError

_PARTITIONS = 4
_SLOW_SHARE = 20
_SPARK_SHARE = 5
_SETTINGS = {"TOPIC_PARTITIONS": str(_PARTITIONS)}
_JOB = "flink_job/stateful_flink_consumer.py"
_OURS = Contender("windows", _JOB, ("--mode", "exactly-once"))
_PLAIN = Contender("plain SQL", "benchmarks/jobs/plain_sql.py", judge="classic")
CONTENDERS = (
    _OURS,
    Contender("no guarantee", "benchmarks/jobs/no_guarantee.py"),
    _PLAIN,
    Contender("classic", "flink_job/classic.py", ("--mode", "exactly-once"), share=_SLOW_SHARE, judge="classic"),
)
PARALLEL = tuple(
    Contender(f"parallelism {number}", _JOB, ("--mode", "exactly-once"), parallelism=number) for number in (1, 2, 4)
)
_WIDTHS = "{:<34} {:>10} {:>10} {:>9} {:>13} {:>7}  {}"
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
            if contender in (_OURS, *PARALLEL) and cost.outcome != "holds":
                raise StackError(f"{contender.name}: the verdict is {cost.outcome}: not a valid measurement", 1)
            if number:
                costs[contender.name].append(cost)
    heading = f"{records} visits, {rounds} rounds"
    row(_WIDTHS, heading, "records in", "out", "CPU s/M", "spread", "ratio", "verdict")
    for contender in CONTENDERS:
        _cost_row(contender.name, costs[contender.name], costs[_PLAIN.name])
    print("\nCPU seconds per million visits by task, at parallelism 1, 2 and 4")
    for contender in PARALLEL:
        _cost_row(contender.name, costs[contender.name], costs[_PLAIN.name])
        for name, seconds in _by_task(costs[contender.name]):
            print(f"    {name:<30} {seconds:6.1f}")


def _cost_row(name: str, costs: Sequence[Cost], plain: Sequence[Cost]) -> None:
    figures = [cost.per_million for cost in costs]
    ratios = [cost.per_million / base.per_million for cost, base in zip(costs, plain, strict=True)]
    outcome = costs[-1].outcome + (" (disturbed)" if any(cost.disturbed for cost in costs) else "")
    row(
        _WIDTHS, name, costs[-1].records, costs[-1].written, f"{statistics.median(figures):.1f}",
        f"{min(figures):.1f}-{max(figures):.1f}", f"{statistics.median(ratios):.2f}", outcome,
    )  # fmt: skip


def _by_task(costs: Sequence[Cost]) -> list[tuple[str, float]]:
    """Threads by what they do, the most expensive first."""
    total: dict[str, float] = {}
    for cost in costs:
        for thread, seconds in cost.threads.items():
            name = re.sub(r"[#0-9/ (]+$", "", thread)
            total[name] = total.get(name, 0.0) + seconds * 1e6 / cost.records / len(costs)
    return sorted(((n, s) for n, s in total.items() if s >= 0.1), key=lambda pair: -pair[1])


def spark(stack: OwnStack, records: int, rounds: int) -> None:
    """Measure the synchronizer and the naive one and print their table.

    Each reads everything, and a fifth of it: the difference is what records cost, without the start of a JVM.
    """
    root = stack.home.root / "spark-runs"
    small = stack.changed({"VISITS_TOPIC": topic_of(_SPARK_SHARE)})
    figures: dict[str, list[float]] = {"synchronizer": [], "naive synchronizer": []}
    written: dict[str, int] = {}
    outcomes = dict.fromkeys(figures, "-")
    for number in range(rounds):
        for name, costs in figures.items():
            say(f"round {number + 1} of {rounds}, {name} ...")
            seconds = []
            for chosen, wanted in ((small, records // _SPARK_SHARE), (stack, records)):
                folder = root / f"{name}-{number}-{wanted}".replace(" ", "-")
                output, checkpoint = folder / "output", folder / "checkpoint"
                command = ["python", "-m", "benchmarks.naive_synchronizer", str(output), str(checkpoint)]
                if name == "synchronizer":
                    command = ["python", "-m", "spark_job.visits_json_synchronizer", "--trigger", "available-now"]
                    command += ["--output", str(output), "--checkpoint", str(checkpoint)]
                done = spark_runs.run(chosen, command, output)
                if done.lines != wanted:
                    raise StackError(f"{name} has written {done.lines} lines of {wanted}: not a valid measurement", 1)
                if name == "synchronizer":
                    outcomes[name] = _judged(chosen, output, checkpoint)
                seconds.append(done.cpu_seconds)
                written[name] = done.lines
            costs.append((seconds[1] - seconds[0]) * 1e6 / (records - records // _SPARK_SHARE))
    print()
    for name, costs in figures.items():
        ratios = [own / naive for own, naive in zip(costs, figures["naive synchronizer"], strict=True)]
        row(
            _WIDTHS, name, records, written[name], f"{statistics.median(costs):.1f}",
            f"{min(costs):.1f}-{max(costs):.1f}", f"{statistics.median(ratios):.2f}", outcomes[name],
        )  # fmt: skip


def _judged(stack: OwnStack, output: Path, checkpoint: Path) -> str:
    """The verdict on a synchronizer's output. Raises StackError unless it holds."""
    paths = ["--output", str(output), "--checkpoint", str(checkpoint)]
    outcome = stack.tool("benchmarks.judge", "spark", "--as-is", *paths).split()[0]
    if outcome != "holds":
        raise StackError(f"the verdict on {output} is {outcome}: not a valid measurement", 1)
    return outcome


def measure(records: int, rounds: int) -> None:
    """Measure all, and print the tables. Raises StackError when a measurement is not valid."""
    with own_stack(_SETTINGS) as stack:
        stack.start("kafka")
        stack.topics()
        for share in (1, _SLOW_SHARE, _SPARK_SHARE):
            topic = topic_of(share)
            say(f"filling {topic} with {records // share} visits ...")
            chosen = stack.changed({"VISITS_TOPIC": topic})
            chosen.topics()
            chosen.tool("benchmarks.fill", str(records // share))
        consumer_rate(stack, records, "cold")
        rate = consumer_rate(stack, records, "warm")
        say(f"Kafka's own consumer reads {rate} records/s: the limit for every other reader")
        stack.start("jobmanager", "taskmanager")
        flink(stack, records, rounds)
        stack.stop("taskmanager", "jobmanager")
        spark(stack, records, rounds)


if __name__ == "__main__":
    run_benchmark("throughput.sh", measure, RECORDS="1000000", RUNS="5")
