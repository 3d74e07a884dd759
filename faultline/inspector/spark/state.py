"""State operators of a Spark checkpoint: their names without a JVM, their keys and rows with one.

Rows come from Spark's own `state-metadata` and `statestore` readers. The files under `state/` are written by
Spark's state store providers in their own format: `1.delta` there is not a Delta Lake table.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Operator, StateStore
from faultline.inspector.spark.moved import corrected, home_of
from faultline.inspector.spark.operator_metadata import MetadataError, OperatorMetadata, Variable
from faultline.inspector.spark.operator_metadata import read as read_metadata
from faultline.inspector.spark.state_files import numbered, operator_folders, stores_of, words_of
from faultline.settings import ROOT
from faultline.storage.location import Location
from faultline.storage.reading import size_below

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

OPERATORS = {
    "stateStoreSave": "an aggregation",
    "sessionWindowStateStoreSaveExec": "session windows",
    "dedupe": "a deduplication",
    "dedupeWithinWatermark": "a deduplication within the watermark",
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
            problems.append(str(error))
            continue
        operator.name, operator.words = metadata.name or None, OPERATORS.get(metadata.name, "")
        files = words_of(stores_of(folder, max([0, *(count for _, count in metadata.stores)])))
        note = f"{files}; {NOT_READ}"
        home = home_of(metadata, folder)
        if home is not None:
            notes.append(
                f"{folder} was written in {home}, and names the schema files of its state by that absolute path: "
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
    if not isinstance(checkpoint, Path):
        raise InspectorError(f"{checkpoint}/state: Spark reads it from a disk only; copy the checkpoint to one")
    # Importing pyspark takes most of a second, which reading offsets must not cost.
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        metadata = {folder: read_metadata(folder) for folder in operator_folders(checkpoint)}
    except MetadataError as error:
        raise InspectorError(str(error)) from None
    homes = {folder.name: home for folder, each in metadata.items() if each and (home := home_of(each, folder))}
    variables = {folder.name: each.variables for folder, each in metadata.items() if each}
    spark = _session()
    try:
        with corrected(checkpoint, homes) if homes else contextlib.nullcontext(checkpoint) as place:
            return _read_operators(spark, place, variables, rows)
    except PySparkException as error:
        raise InspectorError(f"{checkpoint}/state: Spark cannot read it: {str(error).splitlines()[0]}") from None
    except Py4JJavaError as error:
        raise InspectorError(f"{checkpoint}/state: Spark cannot read it: {error.java_exception.getMessage()}") from None
    finally:
        spark.stop()


def _read_operators(
    spark: SparkSession, checkpoint: Path, variables: dict[str, tuple[Variable, ...]], rows: int
) -> list[Operator]:
    operators: dict[int, Operator] = {}
    for entry in spark.read.format("state-metadata").load(str(checkpoint)).collect():
        operator = operators.setdefault(entry.operatorId, Operator(str(entry.operatorId), entry.operatorName))
        for variable in variables.get(operator.id) or (None,):
            operator.state.append(_store(spark, checkpoint, entry, variable, rows))
    return [operators[number] for number in sorted(operators)]


def _store(spark: SparkSession, checkpoint: Path, entry: Row, variable: Variable | None, rows: int) -> StateStore:
    """Read a store, or of transformWithState's one a state variable, whose lists and maps have a row for each entry."""
    reader = (
        spark.read.format("statestore")
        .option("operatorId", entry.operatorId)
        .option("storeName", entry.stateStoreName)
    )  # fmt: skip
    store = StateStore(entry.stateStoreName, "state store", partitions=entry.numPartitions)
    if variable is not None:
        reader = reader.option(
            *(("readRegisteredTimers", "true") if variable.timers else ("stateVarName", variable.name))
        )
        store.name, store.kind = variable.name, _kind(variable)
    content = reader.load(str(checkpoint))
    store.keys = content.count()
    store.note = f"batches {entry.minBatchId} to {entry.maxBatchId}"
    for row in content.drop("partition_id").limit(rows).collect():
        values = row.asDict(recursive=True)
        key = values.pop("key")
        value = values["value"] if set(values) == {"value"} else values
        store.rows.append({"key": _plain(key), "value": _plain(value)})
    return store


def _plain(value: dict[str, Any] | None) -> str:
    return "none" if value is None else json.dumps(value, default=str)


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
