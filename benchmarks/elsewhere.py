"""The windows in other engines, beside the windowing job: CPU time per million visits, records out, and the verdict.

Usage: python -m benchmarks.elsewhere [RECORDS [ROUNDS]]

Each engine reads all of the topic, and a fifth of it: the difference is what visits cost, without the start and the
end of a process. The windowing job runs already, and is measured over all of it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.cpu import Disturbance, seconds_of_program
from benchmarks.flink_runs import Contender, run, topic_of
from benchmarks.own_stack import OwnStack, own_stack, row, run_benchmark
from faultline.messages import say
from faultline.stack.errors import StackError

_SHARE = 5
_OURS = Contender("windows", "flink_job/stateful_flink_consumer.py", ("--mode", "exactly-once"))
_PROGRAMS = {"Quix Streams": "benchmarks.jobs.quix_streams", "Bytewax": "benchmarks.jobs.bytewax_flow"}
_WIDTHS = "{:<28} {:>10} {:>10} {:>9} {:>13} {:>7}  {}"


@dataclass(frozen=True)
class Figure:
    """One round of one engine."""

    per_million: float
    written: int
    outcome: str
    disturbed: bool


def _run(stack: OwnStack, name: str, number: int, share: int) -> tuple[float, int, str]:
    """Run a program to its end: CPU seconds, windows written, the verdict. Raises StackError when it fails."""
    own = f"{name.replace(' ', '-')}-{number}-{share}"
    changed = stack.changed(
        {
            "VISITS_TOPIC": topic_of(share),
            "CLASSIC_WINDOWS_TOPIC": f"windows-{own}",
            "CLASSIC_LATE_TOPIC": f"late-{own}",
            "CLASSIC_JOB_NAME": own,
        }
    )
    changed.topics()
    python = str(changed.backend.artifacts.interpreter("elsewhere"))
    command = [python, "-W", "ignore", "-m", _PROGRAMS[name], str(stack.home.root / "elsewhere" / own)]
    seconds = seconds_of_program(name, command, changed.backend.environment("tools"))
    outcome, _, observed, *_ = changed.tool("benchmarks.judge", "classic", "--as-is").split()
    return seconds, int(observed), outcome


def elsewhere(stack: OwnStack, name: str, number: int, records: int) -> Figure:
    """Measure another engine. Raises StackError when it has written no window."""
    disturbance = Disturbance(stack.mark)
    small, *_ = _run(stack, name, number, _SHARE)
    large, written, outcome = _run(stack, name, number, 1)
    if not written:
        raise StackError(f"{name} has written no window: not a valid measurement", 1)
    per_million = (large - small) * 1e6 / (records - records // _SHARE)
    return Figure(per_million, written, outcome, disturbance.disturbed())


def ours(stack: OwnStack, number: int, records: int) -> Figure:
    """Measure the windowing job. Raises StackError when the verdict does not hold."""
    cost = run(stack, _OURS, number, records)
    if cost.outcome != "holds":
        raise StackError(f"windows: the verdict is {cost.outcome}: not a valid measurement", 1)
    return Figure(cost.per_million, cost.written, cost.outcome, cost.disturbed)


def measure(records: int, rounds: int) -> None:
    """Measure all in turn, after a round that is not counted, and print the table."""
    figures: dict[str, list[Figure]] = {name: [] for name in (_OURS.name, *_PROGRAMS)}
    with own_stack({"TOPIC_PARTITIONS": "4"}) as stack:
        stack.backend.artifacts.make_environment("elsewhere")
        stack.start("kafka")
        stack.topics()
        for share in (1, _SHARE):
            chosen = stack.changed({"VISITS_TOPIC": topic_of(share)})
            chosen.topics()
            chosen.tool("benchmarks.fill", str(records // share))
        stack.start("jobmanager", "taskmanager")
        for number in range(rounds + 1):
            for name, found in figures.items():
                say(f"round {number} of {rounds}, {name} ...")
                one = name == _OURS.name
                figure = ours(stack, number, records) if one else elsewhere(stack, name, number, records)
                if number:
                    found.append(figure)
    row(_WIDTHS, f"{records} visits, {rounds} rounds", "records in", "windows", "CPU s/M", "spread", "ratio", "verdict")
    for name, found in figures.items():
        seconds = [figure.per_million for figure in found]
        ratios = [each.per_million / base.per_million for each, base in zip(found, figures[_OURS.name], strict=True)]
        outcome = found[-1].outcome + (" (disturbed)" if any(figure.disturbed for figure in found) else "")
        row(
            _WIDTHS, name, records, found[-1].written, f"{statistics.median(seconds):.1f}",
            f"{min(seconds):.1f}-{max(seconds):.1f}", f"{statistics.median(ratios):.2f}", outcome,
        )  # fmt: skip


if __name__ == "__main__":
    run_benchmark("elsewhere.sh", measure, RECORDS="200000", ROUNDS="5")
