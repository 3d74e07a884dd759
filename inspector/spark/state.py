"""State operators of a Spark checkpoint: their names without a JVM, their keys and rows with one.

Rows come from Spark's own `state-metadata` and `statestore` readers. The files under `state/` are written by
Spark's state store providers in their own format: `1.delta` there is not a Delta Lake table.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from contract.settings import ROOT
from inspector.errors import InspectorError
from inspector.model import Operator, StateStore
from inspector.spark.state_files import stores_of, words_of

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
"""What Spark's names of stateful operators mean."""
NOT_READ = "keys and rows are not read without --state, which starts Spark for some seconds"


def list_operators(checkpoint: Path, problems: list[str]) -> list[Operator]:
    """List the state operators as `state/N/_metadata/metadata` names them; no JVM.

    Spark before 4.0 writes no such file: then only the operator's number is known.
    """
    operators = []
    state = checkpoint / "state"
    for folder in sorted(state.glob("[0-9]*"), key=lambda path: int(path.name)) if state.is_dir() else []:
        operator = Operator(folder.name, state_bytes=_bytes_of(folder))
        operators.append(operator)
        partitions = sum(1 for child in folder.iterdir() if child.name.isdigit())
        file = folder / "_metadata" / "metadata"
        try:
            document = json.loads(file.read_bytes().split(b"\n", 1)[1])
            operator.name = document["operatorInfo"]["operatorName"]
            operator.words = OPERATORS.get(operator.name, "")
            stores = document["stateStoreInfo"]
        except FileNotFoundError:
            stores = [{"storeName": "default", "numPartitions": partitions}] if not _v2(folder) else []
        except (ValueError, KeyError, IndexError, TypeError):
            problems.append(f"{file} is cut short or not JSON")
            stores = []
        files = words_of(stores_of(folder, max([0, *(store["numPartitions"] for store in stores)])))
        note = f"{files}; {NOT_READ}"
        operator.state = [
            StateStore(store["storeName"], "state store", partitions=store["numPartitions"], note=note)
            for store in stores
        ]
        if not stores and _v2(folder):
            note = f"{files}; its metadata is of version 2, which Spark's own reader reads: give --state"
            operator.state = [StateStore("all states", "state store", partitions=partitions, note=note)]
    return operators


def _v2(folder: Path) -> bool:
    """Whether the operator's metadata is in the second format (transformWithState), which only Spark reads."""
    return (folder / "_metadata" / "v2").is_dir()


def _bytes_of(folder: Path) -> int:
    """A file that a running query removes or renames meanwhile does not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(root) / name).stat().st_size
    return total


def read_state(checkpoint: Path, rows: int) -> list[Operator]:
    """Read keys and up to `rows` rows of each state store with Spark's own readers, as of the last commit.

    Raises InspectorError when Spark cannot read the state; the message has Spark's own first line.
    """
    # Importing pyspark takes most of a second, which reading offsets must not cost.
    from pyspark.errors import PySparkException  # noqa: PLC0415

    spark = _session()
    operators: dict[int, Operator] = {}
    try:
        for entry in spark.read.format("state-metadata").load(str(checkpoint)).collect():
            operator = operators.setdefault(entry.operatorId, Operator(str(entry.operatorId), entry.operatorName))
            operator.state.append(_store(spark, checkpoint, entry, rows))
    except PySparkException as error:
        raise InspectorError(f"{checkpoint}/state: Spark cannot read it: {str(error).splitlines()[0]}") from None
    finally:
        spark.stop()
    return [operators[number] for number in sorted(operators)]


def _store(spark: SparkSession, checkpoint: Path, entry: Row, rows: int) -> StateStore:
    content = (
        spark.read.format("statestore")
        .option("operatorId", entry.operatorId)
        .option("storeName", entry.stateStoreName)
        .load(str(checkpoint))
    )
    store = StateStore(entry.stateStoreName, "state store", partitions=entry.numPartitions)
    store.keys = content.count()
    store.note = f"batches {entry.minBatchId} to {entry.maxBatchId}"
    for row in content.limit(rows).collect():
        store.rows.append({"key": _plain(row["key"]), "value": _plain(row["value"])})
    return store


def _plain(row: Row | None) -> str:
    if row is None:
        return "none"
    return json.dumps(row.asDict(recursive=True), default=str)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Delta and Kafka jars are not needed: a state store holds rows, not sources.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["SPARK_CONF_DIR"] = str(ROOT / "inspector" / "spark")
    session: SparkSession = (
        SparkSession.builder.master("local[1]")
        .appName("inspector")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "512m")
        .getOrCreate()
    )
    return session
