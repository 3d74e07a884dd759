"""The reason why Spark stopped: the most specific exception in Spark's JVM."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Which task failed and how often differs from run to run.
_TASK = re.compile(r"(?<=Job aborted due to stage failure): Task .*")
_FOLDERS = re.compile(r"(file:)?/\S*/(?=checkpoint/|output/)")
_LONGEST = 120


@dataclass(frozen=True)
class Failure:
    """`condition`: Spark's error class, None where it has none; `kind`: the Java class; `message`: its first line.

    Paths in `message` are relative to the lab's folder for the pipeline.
    """

    kind: str
    condition: str | None
    message: str

    def __str__(self) -> str:
        return f"`{self.condition}`" if self.condition else f"`{self.kind}`: {self.message}"


def failure_of(query: StreamingQuery | None, error: BaseException) -> Failure:
    """Read the failure of a query that ended, or the error of a query that did not start.

    Of the chain of causes: the deepest one with a Spark error class, or the outermost one.
    """
    chain = _chain(_origin(query, error))
    named = [link for link in chain if link.condition]
    if named:
        return named[-1]
    # An ExecutionException only wraps the error of a thread that the code waited for.
    telling = [link for link in chain if link.kind != "ExecutionException"]
    return telling[0] if telling else Failure(type(error).__name__, None, _first_line(str(error)))


def _origin(query: StreamingQuery | None, error: BaseException) -> Any:
    if query is not None and query._jsq.exception().isDefined():
        return query._jsq.exception().get().cause()
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _chain(java: Any) -> list[Failure]:
    links: list[Failure] = []
    while java is not None:
        condition = None
        if _is_spark_throwable(java):
            # Spark before 4.0 has another name for it.
            condition = java.getCondition() if _has(java, "getCondition") else java.getErrorClass()
        links.append(Failure(java.getClass().getSimpleName(), condition, _first_line(str(java.getMessage()))))
        java = java.getCause()
    return links


def _is_spark_throwable(java: Any) -> bool:
    """Return whether the Java object has an error class."""
    clazz = java.getClass()
    while clazz is not None:
        if any(each.getName() == "org.apache.spark.SparkThrowable" for each in clazz.getInterfaces()):
            return True
        clazz = clazz.getSuperclass()
    return False


def _has(java: Any, method: str) -> bool:
    return any(each.getName() == method for each in java.getClass().getMethods())


def _first_line(message: str) -> str:
    line = _TASK.sub("", _FOLDERS.sub("", message.splitlines()[0] if message else ""))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
