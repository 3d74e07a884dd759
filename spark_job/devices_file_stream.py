"""Stream device events from JSON files: `scripts/devices_file_stream.sh --input DIR ...`.

Each line of a file is one event, `{"eventId", "data": {"devices": [{"deviceId", "temperature"}]}}`; each device of
an event becomes one row (eventId, deviceId, temperature). One file per batch; it reads all files that exist, then ends.
Exit codes: 0 done, 1 the query failed, 2 a wrong flag or something missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.command import Flags, first_line, run
from faultline.settings import Settings
from spark_job.batch_sinks import append, delta_once, overwrite
from spark_job.options import FILES, FOREACH_APPEND, FOREACH_OVERWRITE, alone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "devices"
CONSOLE, DELTA = "console", "delta"
SINKS = (CONSOLE, FILES, FOREACH_APPEND, FOREACH_OVERWRITE, DELTA)
COLUMNS = ("eventId", "deviceId", "temperature")
SCHEMA = "eventId STRING, data STRUCT<devices: ARRAY<STRUCT<deviceId: STRING, temperature: DOUBLE>>>"


@dataclass(frozen=True)
class DeviceOptions:
    """One run. `output`: None for the console. `max_file_age`: a Spark interval, `7 days`, or None: the default."""

    input: Path
    checkpoint: Path
    output: Path | None
    sink: str
    max_files: int = 1
    max_file_age: str | None = None
    latest_first: bool = False


def devices(spark: SparkSession, options: DeviceOptions) -> DataFrame:
    """Return the stream of rows (eventId, deviceId, temperature)."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - half a second, and a wrong flag should be reported at once

    reader = (
        # A fixed schema: an inferred one would need to read the files, and change with them.
        spark.readStream.schema(SCHEMA)
        # One file per batch: batch N is file N, easy to follow.
        .option("maxFilesPerTrigger", options.max_files)
        .option("latestFirst", options.latest_first)
        # A line that is not an event ends the query; by default it would silently become a row of nulls.
        .option("mode", "FAILFAST")
    )
    if options.max_file_age is not None:
        reader = reader.option("maxFileAge", options.max_file_age)
    # An event without devices stays a row: explode would drop it.
    device = F.explode_outer("data.devices").alias("device")
    return reader.json(str(options.input)).select("eventId", device).select("eventId", "device.*")


def start(rows: DataFrame, options: DeviceOptions) -> StreamingQuery:
    """Start the query: it reads every file that exists now, then ends."""
    writer = rows.writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(options.checkpoint))
    if options.sink == CONSOLE:
        return writer.format("console").option("truncate", "false").start()
    if options.sink == FILES:
        return writer.format("json").option("path", str(options.output)).start()
    assert options.output is not None
    if options.sink == DELTA:
        return writer.foreachBatch(delta_once(options.output, options.checkpoint)).start()
    write = append if options.sink == FOREACH_APPEND else overwrite
    return writer.foreachBatch(write(options.output, "json")).start()


def parse(arguments: list[str] | None) -> DeviceOptions:
    """Read the flags. Ends the process with code 2 and one line when they are invalid."""
    parser = Flags(NAME, prog="scripts/devices_file_stream.sh", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--input", type=Path, required=True, metavar="DIR", help="folder of JSON files")
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="DIR", help="needed by every sink but the console")
    parser.add_argument("--sink", choices=SINKS, default=FILES, help="default: %(default)s")
    parser.add_argument("--max-files", type=int, default=1, metavar="N", help="files per batch (default: %(default)s)")
    parser.add_argument("--max-file-age", metavar="INTERVAL", help="older files are ignored (Spark's default: 7d)")
    parser.add_argument("--latest-first", action="store_true", help="newest files first")
    chosen = DeviceOptions(**vars(parser.parse_args(arguments)))
    if chosen.sink != CONSOLE and chosen.output is None:
        parser.error(f"sink {chosen.sink} needs --output DIR")
    if chosen.max_files < 1:
        parser.error(f"--max-files {chosen.max_files} is not a whole number above 0")
    if not chosen.input.is_dir():
        parser.error(f"--input {chosen.input} is not a folder; make it and put files of events into it")
    output = None if chosen.output is None else chosen.output.absolute()
    return replace(chosen, input=chosen.input.absolute(), checkpoint=chosen.checkpoint.absolute(), output=output)


def stream(options: DeviceOptions, settings: Settings) -> int:
    """Run the query to its end; returns the exit code. Raises UserError when Spark does not start."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from spark_job.delta import DELTA_CONFIGURATION  # noqa: PLC0415
    from spark_job.session import check_java, configuration, launch  # noqa: PLC0415

    check_java()
    with tempfile.TemporaryDirectory(prefix="devices_") as scratch:
        query_options = alone(settings, "devices", options.checkpoint)
        conf = configuration(query_options, settings, Path(scratch)) | {"spark.ui.enabled": "false"}
        # Spark's default checkpoint file manager refuses a second writer; the synchronizer uses a lock instead.
        del conf["spark.sql.streaming.checkpointFileManagerClass"]
        spark = launch(conf | (DELTA_CONFIGURATION if options.sink == DELTA else {}), settings, {})
        try:
            query = start(devices(spark, options), options)
            query.awaitTermination()
            for progress in query.recentProgress:
                if "addBatch" in progress.durationMs:
                    sys.stderr.write(f"devices: batch {progress.batchId}: {progress.numInputRows} rows\n")
            return 0
        except (PySparkException, Py4JError) as error:
            sys.stderr.write(f"devices: the query failed: {first_line(error)}\n")
            return 1
        finally:
            spark.stop()


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    options = parse(arguments)
    return stream(options, Settings())


if __name__ == "__main__":
    run(NAME, main)
