"""State operators of a Spark checkpoint: their names without a JVM, their keys and rows with one.

Rows come from Spark's own `state-metadata` and `statestore` readers. The files under `state/` are written by
Spark's state store providers in their own format: `1.delta` there is not a Delta Lake table.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.command import first_line
from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Operator, StateStore
from faultline.inspector.spark.moved import corrected, written_elsewhere
from faultline.inspector.spark.operator_metadata import MetadataError, OperatorMetadata, Variable
from faultline.inspector.spark.operator_metadata import read as read_metadata
from faultline.inspector.spark.state_files import numbered, operator_folders, stores_of, words_of
from faultline.settings import ROOT
from faultline.storage.location import Location
from faultline.storage.reading import size_below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

OPERATORS = {
    "stateStoreSave": "an aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "a deduplication",
    "dedupeWithinWatermark": "a deduplication within the watermark",
    "globalLimit": "a limit",
    "symmetricHashJoin": "a join of two streams",
    "flatMapGroupsWithState": "a function of its own for each group",
    "applyInPandasWithState": "a function of its own for each group",
    "transformWithStateExec": "a processor of its own for each group",
    "transformWithStateInPandasExec": "a processor of its own for each group",
}
"""Meanings of Spark's names of stateful operators."""
NOT_READ = "keys and rows are not read without --state, which starts Spark for some seconds"


def list_operators(checkpoint: Location, problems: list[str], notes: list[str]) -> list[Operator]:
    """List the state operators as their `_metadata` names them; no JVM.

    Spark before 4.0 writes none: then only the operator's number is known. What is wrong goes to `problems`, what is
    worth knowing to `notes`.
    """
    operators = []
    for folder in operator_folders(checkpoint):
        operator = Operator(folder.name, state_bytes=size_below(folder))
        operators.append(operator)
        partitions = len(numbered(folder))
        try:
            metadata = read_metadata(folder) or OperatorMetadata("", (("default", partitions),))
        except MetadataError as error:
            problems += [] if str(error) in problems else [str(error)]
            continue
        operator.name, operator.words = metadata.name or None, OPERATORS.get(metadata.name, "")
        files = words_of(stores_of(folder, max([0, *(count for _, count in metadata.stores)])))
        note = f"{files}; {NOT_READ}"
        elsewhere = written_elsewhere(metadata, folder)
        if elsewhere is not None:
            notes.append(
                f"{folder} was written in {elsewhere}, and names the schema files of its state by that absolute path: "
                "a query that starts from this copy fails unless they are there too"
            )
        for name, count in metadata.stores:
            named = [(each.name, _kind(each)) for each in metadata.variables] or [(name, "state store")]
            operator.state += [
                StateStore(state, kind, partitions=count, note=f"in the same store as {named[0][0]}" if at else note)
                for at, (state, kind) in enumerate(named)
            ]
    return operators


def _kind(variable: Variable) -> str:
    return "timers" if variable.timers else variable.kind


def read_state(checkpoint: Location, rows: int) -> list[Operator]:
    """Read keys and up to `rows` rows of each state store with Spark's own readers, as of the last commit.

    Raises InspectorError when Spark cannot read the state; the message has Spark's own first line.
    """
    operators: dict[int, Operator] = {}
    with _stores(checkpoint) as stores:
        for store in stores:
            operator = operators.setdefault(store.entry.operatorId, Operator(store.operator, store.entry.operatorName))
            content = store.content()
            state = StateStore(store.name, store.kind, content.count(), store.entry.numPartitions)
            state.note = f"batches {store.entry.minBatchId} to {store.entry.maxBatchId}"
            for row in store.rows(content.limit(rows)):
                state.rows.append({name: json.dumps(row[name]) for name in ("key", "entry", "value") if name in row})
            operator.state.append(state)
    return [operators[number] for number in sorted(operators)]


def spark_rows(checkpoint: Location, operator: str | None, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of each state store, at most `limit` of each, of one operator (number or name) or of all.

    Raises InspectorError when Spark cannot read the state, or there is no such operator.
    """
    with _stores(checkpoint) as stores:
        chosen = [store for store in stores if operator in (None, store.operator, store.entry.operatorName)]
        if operator is not None and not chosen:
            there = sorted({f"{store.operator} ({store.entry.operatorName})" for store in stores})
            raise InspectorError(f"{checkpoint} has no operator {operator}; there are: {', '.join(there) or 'none'}")
        for store in chosen:
            content = store.content()
            for row in store.rows(content if limit is None else content.limit(limit)):
                yield {"operator": store.operator, "state": store.name, "kind": store.kind} | row


@contextlib.contextmanager
def _stores(checkpoint: Location) -> Iterator[list[_Store]]:
    """Start Spark and list what its readers read; of a transformWithState operator's one store each state variable."""
    if not isinstance(checkpoint, Path):
        raise InspectorError(f"{checkpoint}/state: Spark reads it from a disk only; copy the checkpoint to one")
    # Importing pyspark takes most of a second, which reading offsets must not cost.
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        metadata = {folder: read_metadata(folder) for folder in operator_folders(checkpoint)}
    except MetadataError as error:
        raise InspectorError(str(error)) from None
    if not metadata:
        yield []
        return
    print("reading state by Spark's own readers: Spark starts, this takes some seconds", file=sys.stderr)
    elsewhere = {
        folder.name: there for folder, each in metadata.items() if each and (there := written_elsewhere(each, folder))
    }
    variables = {folder.name: each.variables for folder, each in metadata.items() if each}
    spark = _session()
    try:
        with corrected(checkpoint, elsewhere) if elsewhere else contextlib.nullcontext(checkpoint) as readable:
            yield [
                _Store(spark, readable, entry, variable)
                for entry in spark.read.format("state-metadata").load(str(readable)).collect()
                for variable in variables.get(str(entry.operatorId)) or (None,)
            ]
    except PySparkException as error:
        raise InspectorError(f"{checkpoint}/state: Spark cannot read it: {first_line(error)}") from None
    except Py4JJavaError as error:
        raise InspectorError(f"{checkpoint}/state: Spark cannot read it: {error.java_exception.getMessage()}") from None
    finally:
        spark.stop()


@dataclass(frozen=True)
class _Store:
    """A state store, or a state variable in it, whose lists and maps have a row for each entry.

    `entry`: its row of the reader state-metadata.
    """

    spark: SparkSession
    checkpoint: Path
    entry: Row
    variable: Variable | None

    @property
    def operator(self) -> str:
        return str(self.entry.operatorId)

    @property
    def name(self) -> str:
        return str(self.entry.stateStoreName) if self.variable is None else self.variable.name

    @property
    def kind(self) -> str:
        return "state store" if self.variable is None else _kind(self.variable)

    def content(self) -> DataFrame:
        reader = (
            self.spark.read.format("statestore")
            .option("operatorId", self.entry.operatorId)
            .option("storeName", self.entry.stateStoreName)
        )  # fmt: skip
        if self.variable is not None:
            timers = ("readRegisteredTimers", "true")
            reader = reader.option(*(timers if self.variable.timers else ("stateVarName", self.variable.name)))
        return reader.load(str(self.checkpoint)).drop("partition_id")

    def rows(self, content: DataFrame) -> Iterator[dict[str, Any]]:
        """Yield key, entry (of a map) and value of each row, as JSON types; Spark itself writes the JSON."""
        columns = ", ".join(f"`{name}`" for name in content.columns)
        text = content.selectExpr(f"to_json(struct({columns}), map('ignoreNullFields', 'false')) AS row")
        for row in text.toLocalIterator():
            found = json.loads(row.row)
            shown = {"key": found.pop("key")}
            if "user_map_key" in found:
                shown["entry"] = found.pop("user_map_key")
            yield shown | {"value": next(iter(found.values())) if set(found) <= {"value", "user_map_value"} else found}


def _session() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Delta and Kafka jars are not needed: a state store holds rows, not sources.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["SPARK_CONF_DIR"] = str(ROOT / "faultline" / "inspector" / "spark")
    session: SparkSession = (
        SparkSession.builder.master("local[1]")
        .appName("inspector")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "512m")
        .getOrCreate()
    )
    # Since 4.2 the readers ask the coordinator of state stores, which begins with the manager of queries.
    _ = session.streams.active
    return session
