"""Two stateful queries over visits in files, and their state, read by Spark's own readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.waiting import wait_until
from labs.frame.progress import Batch, batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "visit_id STRING, event_time TIMESTAMP, page STRING"
_SNAPSHOT_SECONDS = 60
# Names of snapshot files of state: of the HDFS-backed provider, of RocksDB.
SNAPSHOTS = ("*.snapshot", "*.zip")
Key = tuple[int, str]
"""(milliseconds since the epoch, name): a window's end and a page, or an event time and a visit."""


def visits(spark: SparkSession, folder: Path, delay_seconds: int) -> DataFrame:
    """Return the stream of visits, one file per batch, with a watermark."""
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).option("mode", "FAILFAST")
    return reader.json(str(folder)).withWatermark("event_time", f"{delay_seconds} seconds")


def page_counts(stream: DataFrame, window_seconds: int) -> DataFrame:
    """Return the visits of each page in each window of event time: (key_time, name, count)."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    counted = stream.groupBy(F.window("event_time", f"{window_seconds} seconds"), "page").count()
    return counted.select(F.unix_millis("window.end").alias("key_time"), F.col("page").alias("name"), "count")


def without_duplicates(stream: DataFrame) -> DataFrame:
    """Return each visit once, even if it comes several times within the watermark: (key_time, name, count), count 1."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    once = stream.dropDuplicatesWithinWatermark(["visit_id", "event_time"])
    key = F.unix_millis("event_time").alias("key_time")
    return once.select(key, F.col("visit_id").alias("name"), F.lit(1).alias("count"))


def run_stateful(rows: DataFrame, checkpoint: Path, hold: int) -> tuple[list[Batch], list[tuple[Key, int]]]:
    """Run the query over all files; returns its batches by Spark's progress, and its output rows, sorted.

    In batch `hold` it waits for a snapshot of the state: Spark makes them in the background.
    """
    out: dict[int, list[tuple[Key, int]]] = {}

    def collect(batch: DataFrame, batch_id: int) -> None:
        # By batch id: a batch that runs again replaces its own rows.
        out[batch_id] = [((row["key_time"], row["name"]), row["count"]) for row in batch.collect()]
        if batch_id == hold:
            _await_snapshot(checkpoint)

    writer = rows.writeStream.foreachBatch(collect).trigger(availableNow=True).outputMode("append")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    return batches(query), sorted(row for rows_out in out.values() for row in rows_out)


def _await_snapshot(checkpoint: Path) -> None:
    partitions = [path for path in (checkpoint / "state" / "0").iterdir() if path.name.isdigit()]
    wait_until(
        lambda: all(any(path for pattern in SNAPSHOTS for path in each.rglob(pattern)) for each in partitions),
        "a snapshot of each partition of the state",
        seconds=_SNAPSHOT_SECONDS,
        every=0.05,
    )


def _read_state(spark: SparkSession, checkpoint: Path, batch: int | None) -> DataFrame:
    reader = spark.read.format("statestore")
    return (reader if batch is None else reader.option("batchId", batch)).load(str(checkpoint))


def counts_in_state(spark: SparkSession, checkpoint: Path, batch: int | None = None) -> dict[Key, int]:
    """Return (window end, page) -> visits in the state after a batch; None: the newest batch."""
    rows = _read_state(spark, checkpoint, batch).selectExpr(
        "unix_millis(key.window.end) AS key_time", "key.page AS name", "value.count AS count"
    )
    return {(row["key_time"], row["name"]): row["count"] for row in rows.collect()}


def visits_in_state(spark: SparkSession, checkpoint: Path, batch: int | None = None) -> dict[Key, int]:
    """Return (event time, visit) -> 1 of each visit in the state after a batch; None: the newest batch."""
    rows = _read_state(spark, checkpoint, batch).selectExpr(
        "unix_millis(key.event_time) AS key_time", "key.visit_id AS name"
    )
    return {(row["key_time"], row["name"]): 1 for row in rows.collect()}


StateReader = Callable[["SparkSession", Path, "int | None"], dict[Key, int]]
