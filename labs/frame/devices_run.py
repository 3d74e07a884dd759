"""Run the query of `scripts/devices_file_stream.sh` inside a lab's JVM, and read back the output of its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labs.frame.events import Row
from labs.frame.progress import Batch, batches
from labs.frame.story import Story, shown
from spark_job.devices_file_stream import COLUMNS, DELTA, DeviceOptions, devices, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_devices(story: Story, spark: SparkSession, options: DeviceOptions) -> list[Batch]:
    """Run the query until all existing files are read; returns the batches in Spark's progress."""
    flags = [f"--input {shown(options.input)}", f"--checkpoint {shown(options.checkpoint)}", f"--sink {options.sink}"]
    flags += [f"--output {shown(options.output)}"] if options.output else []
    flags += [f"--max-file-age '{options.max_file_age}'"] if options.max_file_age else []
    flags += ["--latest-first"] if options.latest_first else []
    story.command(f"scripts/devices_file_stream.sh {' '.join(flags)}")
    query = start(devices(spark, options), options)
    query.awaitTermination()
    ran = batches(query)
    story.say("Spark ran " + ("; ".join(map(str, ran)) if ran else "no batch: it sees no new file"))
    return ran


def rows_in(spark: SparkSession, options: DeviceOptions) -> list[Row]:
    """Return every row of the output, read like a user of that sink reads it."""
    schema = "eventId STRING, deviceId STRING, temperature DOUBLE"
    reader = spark.read.format("delta") if options.sink == DELTA else spark.read.format("json").schema(schema)
    return [(row[0], row[1], row[2]) for row in reader.load(str(options.output)).select(*COLUMNS).collect()]
