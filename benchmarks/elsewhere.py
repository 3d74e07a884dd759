"""The windows in other engines, beside the windowing job: CPU time per million visits, records out, and the verdict.

Usage: python -m benchmarks.elsewhere [RECORDS [ROUNDS]]

Each engine reads all of the topic, and a fifth of it: the difference is what visits cost, without the start and the
end of a process. The windowing job runs already, and is measured over all of it.
"""

from __future__ import annotations

from benchmarks.cpu import Disturbance, seconds_of_program
from benchmarks.flink_runs import OURS, Cost, fill_topics, run, show_costs, show_heading, topic_of
from benchmarks.own_stack import Judged, OwnStack, own_stack, run_benchmark
from faultline.messages import say
from faultline.stack.errors import StackError

_SHARE = 5
_PROGRAMS = {"Quix Streams": "benchmarks.jobs.quix_streams", "Bytewax": "benchmarks.jobs.bytewax_flow"}


def _run(stack: OwnStack, name: str, number: int, share: int) -> tuple[float, Judged]:
    """Run a program to its end: CPU seconds, and the verdict on its windows. Raises StackError when it fails."""
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
    return seconds, changed.judge("classic", "--as-is")


def elsewhere(stack: OwnStack, name: str, number: int, records: int) -> Cost:
    """Measure another engine. Raises StackError when it has written no window."""
    disturbance = Disturbance(stack.mark)
    small, _ = _run(stack, name, number, _SHARE)
    large, judged = _run(stack, name, number, 1)
    if not judged.observed:
        raise StackError(f"{name} has written no window: not a valid measurement", 1)
    more = records - records // _SHARE
    return Cost(large - small, more, judged.observed, judged.outcome, disturbance.disturbed())


def ours(stack: OwnStack, number: int, records: int) -> Cost:
    """Measure the windowing job. Raises StackError when the verdict does not hold."""
    cost = run(stack, OURS, number, records)
    if cost.outcome != "holds":
        raise StackError(f"windows: the verdict is {cost.outcome}: not a valid measurement", 1)
    return cost


def measure(records: int, rounds: int) -> None:
    """Measure all in turn, after a round that is not counted, and print the table."""
    costs: dict[str, list[Cost]] = {name: [] for name in (OURS.name, *_PROGRAMS)}
    with own_stack({"TOPIC_PARTITIONS": "4"}) as stack:
        stack.backend.artifacts.make_environment("elsewhere")
        stack.start("kafka")
        fill_topics(stack, records, 1, _SHARE)
        stack.start("jobmanager", "taskmanager")
        for number in range(rounds + 1):
            for name, found in costs.items():
                say(f"round {number} of {rounds}, {name} ...")
                one = name == OURS.name
                cost = ours(stack, number, records) if one else elsewhere(stack, name, number, records)
                if number:
                    found.append(cost)
    show_heading(f"{records} visits, {rounds} rounds")
    for name, found in costs.items():
        show_costs(name, records, found, costs[OURS.name])


if __name__ == "__main__":
    run_benchmark("elsewhere.sh", measure, RECORDS="200000", ROUNDS="5")
