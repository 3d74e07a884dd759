"""Writes Spark's class archive: classes that a JVM maps from one file, instead of loading each from its jar.

Usage: python -m spark_job.class_archive FILE

A session starts, and its first batches run, in half the time. The archive belongs to one Java and one set of jars;
with others the JVM ignores it. https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from faultline.command import run
from faultline.settings import Settings
from spark_job.delta import DELTA_CONFIGURATION
from spark_job.options import alone
from spark_job.session import QUIET, configuration, launch

_WRITE_SECONDS = 120
_NO_BROKER = "127.0.0.1:1"
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def practise(spark: SparkSession, folder: Path) -> None:
    """Run what the synchronizer and the labs run, so that its classes are loaded."""
    lines = folder / "lines"
    spark.range(100).selectExpr("cast(id as string) AS value", "current_timestamp() AS at").write.json(str(lines))
    rows = spark.readStream.schema("value string, at timestamp").json(str(lines))
    counted = rows.withWatermark("at", "1 second").groupBy("value").count()
    for name, result, sink in (("files", rows, "json"), ("state", rows.dropDuplicates(["value"]), "delta")):
        query = result.writeStream.format(sink).option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        query.trigger(availableNow=True).start(str(folder / name)).awaitTermination()
    batches = counted.writeStream.outputMode("update").option("checkpointLocation", str(folder / "batches-checkpoint"))
    each = batches.foreachBatch(_collect)
    each.trigger(availableNow=True).start().awaitTermination()
    # Kafka's clients are only created and closed: there is no broker to read from.
    spark.read.format("kafka").option("kafka.bootstrap.servers", _NO_BROKER).option("subscribe", "none").load()
    java: Any = spark._jvm
    clients = java.java.util.Properties()
    for name, value in (
        ("bootstrap.servers", _NO_BROKER), ("key.deserializer", _BYTES), ("value.deserializer", _BYTES),
    ):  # fmt: skip
        clients.setProperty(name, value)
    java.org.apache.kafka.clients.admin.Admin.create(clients).close()
    java.org.apache.kafka.clients.consumer.KafkaConsumer(clients).close()


def _collect(batch: DataFrame, _: int) -> None:
    batch.collect()


def write(file: Path) -> None:
    """Write the archive, or say that Java writes none. Raises UserError when Spark does not start."""
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    settings = Settings()
    with tempfile.TemporaryDirectory(prefix="class-archive-") as folder:
        options = alone(settings, "class-archive", Path(folder))
        conf = configuration(options, settings, Path(folder)) | DELTA_CONFIGURATION | {"spark.ui.port": "0"}
        part = file.with_suffix(".part")
        flags = ("-XX:TieredStopAtLevel=1", f"-XX:ArchiveClassesAtExit={part}", *QUIET)
        conf["spark.driver.extraJavaOptions"] = " ".join((conf["spark.driver.extraJavaOptions"], *flags))
        spark = launch(conf, settings, {"stdout": subprocess.DEVNULL})
        # What fails is raised. Warnings would only frighten: no broker answers, and state is removed while in use.
        spark.sparkContext.setLogLevel("OFF")
        practise(spark, Path(folder))
        process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        # The JVM ends with its standard input, and writes the archive then.
        process.stdin.close()
        process.wait(_WRITE_SECONDS)
    if part.is_file():
        part.rename(file)
    else:
        print("class archive: this Java writes none; Spark starts without one, some seconds slower", file=sys.stderr)


def main() -> int:
    """Run the command line; returns the exit code."""
    write(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    run("class archive", main)
