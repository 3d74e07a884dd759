"""The planned job's operators: their uids in a checkpoint, and the exchanges that the planner adds needlessly.

The Table API can set neither, so this module changes the transformations that the planner has made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway

CLOCK = "OverAggregate"
EXCHANGE = "PartitionTransformation"

_UIDS = {
    "visits": "visits-source",
    "LocalWindowAggregate": "windows-local",
    "GlobalWindowAggregate": "windows",
    "visit_windows": "visit_windows-sink",
    "visits_late": "visits_late-sink",
    "visits_rejected": "visits_rejected-sink",
}
"""uid of an operator by its name in the plan, without the plan's numbers. State is kept under the uid, so a
checkpoint can be restored by a job whose plan is numbered or written differently."""


def transformations(environment: StreamExecutionEnvironment) -> list[Any]:
    """Every transformation of the job, each after its inputs."""
    ordered: dict[int, Any] = {}

    def walk(transformation: Any) -> None:
        if transformation.getId() not in ordered:
            for before in transformation.getInputs():
                walk(before)
            ordered[transformation.getId()] = transformation

    for end in environment._j_stream_execution_environment.getTransformations():
        walk(end)
    return list(ordered.values())


def plain_name(name: str) -> str:
    """`Calc[12]` -> `Calc`."""
    return name.partition("[")[0]


def clocks(operators: list[Any]) -> Iterator[Any]:
    """The running aggregates of flink_job.frontier, in the order of their steps."""
    return (operator for operator in operators if plain_name(operator.getName()) == CLOCK)


def set_uids(environment: StreamExecutionEnvironment) -> None:
    """Set the uid of the source, the sinks and each operator that keeps state.

    Raises ValueError when the plan lacks one of them, or has one twice: then the table of uids is out of date.
    """
    operators = transformations(environment)
    named = [(_UIDS[name], o) for o in operators if (name := plain_name(o.getName())) in _UIDS]
    named += [(f"clock-{number}", operator) for number, operator in enumerate(clocks(operators), start=1)]
    found = sorted(uid for uid, _ in named)
    expected = sorted([*_UIDS.values(), *(f"clock-{number}" for number in range(1, 5))])
    if found != expected:
        raise ValueError(f"the plan has the operators {found}, not {expected}")
    for uid, operator in named:
        operator.setUid(uid)


def chain_clocks(environment: StreamExecutionEnvironment) -> None:
    """Let each step of the clock receive its rows by a method call instead of through a network buffer.

    The planner puts an exchange to one task in front of every running aggregate. Here all rows are at one task
    already (computed_once, by_one_task), so each further exchange would only copy every row, twice. It is removed
    by setting the aggregate's input to the exchange's own input.
    Raises ValueError when the plan has another form.
    """
    operators = transformations(environment)
    field = (
        get_gateway()
        .jvm.java.lang.Class.forName("org.apache.flink.streaming.api.transformations.OneInputTransformation")
        .getDeclaredField("input")
    )
    field.setAccessible(True)
    steps = list(clocks(operators))
    for operator in steps:
        exchange = operator.getInputs()[0]
        if exchange.getClass().getSimpleName() != EXCHANGE:
            raise ValueError(f"{operator.getName()} does not follow an exchange")
        field.set(operator, exchange.getInputs()[0])
    # For any parallelism of the job, the operators between the one exchange and the clock run in one task.
    operator = steps[0].getInputs()[0]
    while operator.getClass().getSimpleName() != EXCHANGE:
        operator.setParallelism(1)
        operator = operator.getInputs()[0]
