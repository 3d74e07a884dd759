"""Names and uids of the job's operators: SQL gives them numbered names and no uids.

State is kept under the uid, so a checkpoint can be restored by a job whose plan is written differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyflink.datastream import StreamExecutionEnvironment


@dataclass(frozen=True)
class Operator:
    """The name that people see in the Flink UI, and the uid under which the operator's state is kept."""

    name: str
    uid: str | None = None


OPERATORS = {
    "visits": Operator("read and parse visits", "visits-source"),
    "late or on time": Operator("late or on time", "late-or-on-time"),
    "LocalWindowAggregate": Operator("count in this task", "windows-local"),
    "GlobalWindowAggregate": Operator("windows per visit_id", "windows"),
    "visit_windows": Operator("visit_windows", "visit_windows-sink"),
    "visits_late": Operator("visits_late", "visits_late-sink"),
    "visits_rejected": Operator("visits_rejected", "visits_rejected-sink"),
}
"""By the name in the plan, without the plan's numbers. Of two with one name, one is `NAME > SINK`: it leads to that."""

_COLUMNS = {
    "LocalWindowAggregate": "on time only",
    "visit_windows": "windows as JSON fields",
    "visits_late": "late only",
    "visits_rejected": "unparsable only",
}
"""Names of the operators that only choose rows and columns, by the operator that reads from them."""


def transformations(environment: StreamExecutionEnvironment) -> Iterator[tuple[Any, str, str]]:
    """Every transformation of the job, each once, with the names of one that reads from it and of a sink behind it."""
    ends = environment._j_stream_execution_environment.getTransformations()
    waiting = [(transformation, "", plain_name(transformation.getName())) for transformation in ends]
    seen: set[int] = set()
    while waiting:
        transformation, reader, sink = waiting.pop()
        if transformation.getId() not in seen:
            seen.add(transformation.getId())
            yield transformation, reader, sink
            name = plain_name(transformation.getName())
            waiting += [(before, name, sink) for before in transformation.getInputs()]


def plain_name(name: str) -> str:
    """`Calc[12]` -> `Calc`."""
    return name.partition("[")[0]


def name_operators(environment: StreamExecutionEnvironment, operators: Mapping[str, Operator] = OPERATORS) -> None:
    """Name every operator, and set the uid of each that keeps state.

    Raises ValueError when the plan lacks one of them, or has one twice: then the table is out of date.
    """
    found = []
    # All names are read before the first is changed.
    for transformation, reader, sink in list(transformations(environment)):
        name = plain_name(transformation.getName())
        if f"{name} > {sink}" in operators:
            name = f"{name} > {sink}"
        operator = operators.get(name) or Operator(_COLUMNS.get(reader, "columns"))
        transformation.setName(operator.name)
        transformation.setDescription(operator.name)
        if operator.uid:
            transformation.setUid(operator.uid)
            found.append(name)
    if sorted(found) != sorted(operators):
        raise ValueError(f"the plan has the operators {sorted(found)}, not {sorted(operators)}")
