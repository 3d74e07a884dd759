"""Record small Spark checkpoints by real runs; what the inspector's tests read.

Usage (needs a broker with topic `visits`, 2 partitions, at least 60 records; tests/golden/record.py starts one):
    python tests/golden/record_spark.py OUTPUT BOOTSTRAP [RECIPE...]

Each recipe leaves OUTPUT/<recipe>/checkpoint and what its query wrote in OUTPUT/<recipe>/output.
`kafka_killed` ends the process inside a batch, so it runs in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

JARS = Path(os.environ.get("STACK_ARTIFACTS") or Path(__file__).resolve().parents[2] / ".artifacts") / "jars" / "spark"
KILLED_BATCH = 3


def session() -> SparkSession:
    """One core, two shuffle partitions: the smallest state that still has several partitions."""
    # Given and empty: none, since the default fits one release only.
    jars = os.environ.get("GOLDEN_SPARK_JARS", ",".join(map(str, sorted(JARS.glob("*.jar")))))
    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "512m")
    )
    if "delta" in jars:
        builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    return builder.getOrCreate()


def visits(spark: SparkSession, bootstrap: str, limit: int) -> DataFrame:
    """Read `visits` from its beginning, `limit` records a batch."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", "visits")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .load()
    )


def kafka_files(spark: SparkSession, bootstrap: str, out: Path) -> None:
    """Kafka to the file sink, every batch committed."""
    lines = visits(spark, bootstrap, 20).selectExpr("CAST(value AS STRING) AS value")
    query = (
        lines.writeStream.format("text")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "output"))
    )
    query.awaitTermination()


def kafka_killed(spark: SparkSession, bootstrap: str, out: Path) -> None:
    """Kafka to foreachBatch; the process is killed inside batch KILLED_BATCH: planned, not committed."""

    def write(rows: DataFrame, batch: int) -> None:
        rows.count()
        if batch == KILLED_BATCH:
            os.kill(os.getpid(), signal.SIGKILL)

    query = (
        visits(spark, bootstrap, 10)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    query.awaitTermination()


def files_windowed(spark: SparkSession, _bootstrap: str, out: Path) -> None:
    """12 small files, one a batch (so that `sources/0/9.compact` is there), to windows with a watermark."""
    source = out / "input"
    source.mkdir(parents=True, exist_ok=True)
    for number in range(12):
        lines = [
            f'{{"visit_id":"v{visit}","event_time":"2026-01-01T00:{number:02d}:{visit * 20:02d}Z"}}\n'
            for visit in range(3)
        ]
        path = source / f"visits-{number:02d}.json"
        path.write_text("".join(lines))
        os.utime(path, (1_767_225_600 + number, 1_767_225_600 + number))
    rows = spark.readStream.schema("visit_id STRING, event_time TIMESTAMP").option("maxFilesPerTrigger", 1)
    windows = (
        rows.json(str(source))
        .withWatermark("event_time", "2 minutes")
        .groupBy(F.window("event_time", "1 minute"), "visit_id")
        .count()
        .selectExpr("visit_id", "window.start AS window_start", "`count` AS visits")
    )
    query = (
        windows.writeStream.format("json")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "output"))
    )
    query.awaitTermination()


def several_sources(spark: SparkSession, bootstrap: str, out: Path) -> None:
    """Kafka, Delta and rate in one query: three lines an offset file."""
    table = out / "delta"
    for start in (0, 100):
        spark.range(start, start + 4).selectExpr("CAST(id AS STRING) AS value").write.format("delta").mode(
            "append"
        ).save(str(table))
    kafka = visits(spark, bootstrap, 30).selectExpr("CAST(value AS STRING) AS value")
    delta = spark.readStream.format("delta").load(str(table))
    rate = (
        spark.readStream.format("rate").option("rowsPerSecond", 2).load().selectExpr("CAST(value AS STRING) AS value")
    )
    seen: list[int] = []

    def count(rows: DataFrame, batch: int) -> None:
        rows.count()
        seen.append(batch)

    query = (
        kafka.union(delta)
        .union(rate)
        .writeStream.foreachBatch(count)
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    while len(seen) < 4 and query.isActive:
        query.awaitTermination(1)
    query.stop()


RECIPES: dict[str, Callable[[SparkSession, str, Path], None]] = {
    recipe.__name__: recipe for recipe in (kafka_files, files_windowed, several_sources, kafka_killed)
}


def main() -> int:
    """Run the recipes that are named, or all; returns the exit code."""
    out, bootstrap, *names = sys.argv[1:]
    for name in names or RECIPES:
        if name == "kafka_killed" and names != [name]:
            done = subprocess.run([sys.executable, __file__, out, bootstrap, name], check=False)
            if done.returncode != -signal.SIGKILL:
                raise SystemExit(f"kafka_killed was to end by SIGKILL, not with {done.returncode}")
            continue
        RECIPES[name](session(), bootstrap, Path(out).resolve() / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
