"""The operators of a job that is planned and not submitted, with the ids under which Flink looks for their state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faultline.inspector.flink.jvm import each

PYTHON_OPERATORS = (
    "org.apache.flink.streaming.api.operators.python.",
    "org.apache.flink.table.runtime.operators.python.",
)

SOURCE = "org.apache.flink.streaming.api.operators.SourceOperator"
WRITER = "org.apache.flink.streaming.runtime.operators.sink.SinkWriterOperator"
COMMITTER = "org.apache.flink.streaming.runtime.operators.sink.CommitterOperator"


@dataclass(frozen=True)
class PlannedOperator:
    """One operator of a planned job.

    `ids`: the ids by which its state is found, that of the uid first; `max_parallelism`: -1 where Flink may choose it.
    `node` is Flink's own StreamNode, `kind` the class of the operator.
    """

    ids: tuple[str, ...]
    name: str
    uid: str | None
    parallelism: int
    max_parallelism: int
    kind: str
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
    def is_python(self) -> bool:
        """True when a Python process runs it: what it keeps is known there alone."""
        return self.kind.startswith(PYTHON_OPERATORS)


def planned_operators(jvm: Any, graph: Any, loader: Any) -> list[PlannedOperator]:
    """List the operators of a StreamGraph, sources first; Flink's own translation gives the ids."""
    flink = jvm.org.apache.flink
    job = graph.getJobGraph(loader, flink.api.common.JobID())
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
            ids = (user_ids[generated], generated) if generated in user_ids else (generated,)
            found.append(
                PlannedOperator(
                    ids=ids,
                    name=node.getOperatorName(),
                    uid=node.getTransformationUID(),
                    parallelism=vertex.getParallelism(),
                    max_parallelism=vertex.getMaxParallelism(),
                    kind=node.getOperatorFactory().getStreamOperatorClass(loader).getName(),
                    node=node,
                )
            )
    return found
