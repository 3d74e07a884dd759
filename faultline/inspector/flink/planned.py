"""The operators of a job that is planned and not submitted, with the ids under which Flink looks for their state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faultline.inspector.flink.jvm import each

PYTHON_OPERATORS = (
    "org.apache.flink.streaming.api.operators.python.",
    "org.apache.flink.table.runtime.operators.python.",
)

_TABLES = "org.apache.flink.table.runtime.operators."
INSIDE = (
    *(f"{_TABLES}{package}." for package in ("aggregate", "deduplicate", "join", "over", "rank", "sort", "window")),
    *(f"{_TABLES}{package}." for package in ("wmassigners", "sink.SinkUpsertMaterializer", "sink.ConstraintEnforcer")),
    "faultline.visits.",
)
"""Operators and functions that reach out to nothing when they are opened: those of SQL, and this project's own."""
OUTSIDE = (f"{_TABLES}join.lookup.", f"{_TABLES}join.deltajoin.")
"""Those among them that look up rows in a connector's table."""
SOURCE = "org.apache.flink.streaming.api.operators.SourceOperator"
WRITER = "org.apache.flink.streaming.runtime.operators.sink.SinkWriterOperator"
COMMITTER = "org.apache.flink.streaming.runtime.operators.sink.CommitterOperator"


@dataclass(frozen=True)
class PlannedOperator:
    """One operator of a planned job.

    `ids`: the ids by which its state is found, that of the uid first; `max_parallelism`: -1 where Flink may choose it.
    `node` is Flink's own StreamNode, `kind` the class of the operator, `code` that of the function in it if it has one.
    """

    ids: tuple[str, ...]
    name: str
    uid: str | None
    parallelism: int
    max_parallelism: int
    kind: str
    code: str
    node: Any

    @property
    def label(self) -> str:
        """The operator's name in sentences."""
        return self.uid or self.name

    @property
    def short_kind(self) -> str:
        """Its class, without the package."""
        return self.kind.rpartition(".")[2]

    @property
    def is_source(self) -> bool:
        """True when it reads from outside."""
        return self.kind == SOURCE

    @property
    def is_sink(self) -> bool:
        """True when it writes to the outside."""
        return self.kind in (WRITER, COMMITTER)

    @property
    def keeps_state(self) -> bool:
        """True when it is sure to keep state: positions, or something for each key."""
        return self.is_source or self.node.getStateKeySerializer() is not None

    @property
    def stays_inside(self) -> bool:
        """True when opening it is sure to read and write nothing but its own state."""
        return self.code.startswith(INSIDE) and not self.code.startswith(OUTSIDE)

    @property
    def keeps_order(self) -> bool:
        """True when a partitioner of the job's own decides which of its tasks, or of those behind it, gets a record."""
        edges = [*each(self.node.getInEdges()), *each(self.node.getOutEdges())]
        return any(edge.getPartitioner().getClass().getSimpleName() == "CustomPartitionerWrapper" for edge in edges)

    @property
    def is_python(self) -> bool:
        """True when a Python process runs it: what it keeps is known there alone."""
        return self.kind.startswith(PYTHON_OPERATORS)


def planned_operators(jvm: Any, graph: Any, loader: Any) -> list[PlannedOperator]:
    """List the operators of a StreamGraph, sources first; Flink's own translation gives the ids."""
    flink = jvm.org.apache.flink
    job = graph.getJobGraph(loader, flink.api.common.JobID())
    has_function = jvm.java.lang.Class.forName("org.apache.flink.streaming.api.operators.UdfStreamOperatorFactory")
    found = []
    for vertex in each(job.getVerticesSortedTopologicallyFromSources()):
        user_ids = {
            pair.getGeneratedOperatorID().toHexString(): pair.getUserDefinedOperatorID().get().toHexString()
            for pair in each(vertex.getOperatorIDs())
            if pair.getUserDefinedOperatorID().isPresent()
        }
        head = flink.streaming.api.graph.StreamConfig(vertex.getConfiguration())
        chained = head.getTransitiveChainedTaskConfigsWithSelf(loader)
        for number in sorted(each(chained.keySet())):
            generated = chained[number].getOperatorID().toHexString()
            node = graph.getStreamNode(number)
            factory = node.getOperatorFactory()
            kind = factory.getStreamOperatorClass(loader).getName()
            ids = (user_ids[generated], generated) if generated in user_ids else (generated,)
            found.append(
                PlannedOperator(
                    ids=ids,
                    name=node.getOperatorName(),
                    uid=node.getTransformationUID(),
                    parallelism=vertex.getParallelism(),
                    max_parallelism=vertex.getMaxParallelism(),
                    kind=kind,
                    code=factory.getUserFunctionClassName() if has_function.isInstance(factory) else kind,
                    node=node,
                )
            )
    return found
