"""Stream device events from JSON files: `scripts/devices_file_stream.sh --input DIR ...`.

Each line of a file is one event, `{"eventId", "data": {"devices": [{"deviceId", "temperature"}]}}`; each device of
an event becomes one row (eventId, deviceId, temperature). One file a batch, all files that are there, then the end.
Exit codes: 0 done, 1 the query failed, 2 a mistake or something missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from contract.command import Flags, fail
from contract.settings import Settings, SettingsError
from spark_job.checkpoint import BATCH_FOLDER
from spark_job.options import FILES, FOREACH_APPEND, FOREACH_OVERWRITE, UserError
from spark_job.options import parse as synchronizer_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "devices"
CONSOLE, DELTA = "console", "delta"
SINKS = (CONSOLE, FILES, FOREACH_APPEND, FOREACH_OVERWRITE, DELTA)
COLUMNS = ("eventId", "deviceId", "temperature")
SCHEMA = "eventId STRING, data STRUCT<devices: ARRAY<STRUCT<deviceId: STRING, temperature: DOUBLE>>>"


@dataclass(frozen=True)
class DeviceOptions:
    """One run. `output` is None for the console; `max_file_age` is an interval of Spark, `7 days`, or None: its own."""

    input: Path
    checkpoint: Path
    output: Path | None
    sink: str
    max_files: int = 1
    max_file_age: str | None = None
    latest_first: bool = False


def devices(spark: SparkSession, options: DeviceOptions) -> DataFrame:
    """Return the stream of rows (eventId, deviceId, temperature)."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - half a second, and a mistake should be told at once

    reader = (
        # A given schema: inferring one would read the files, and change with them.
        spark.readStream.schema(SCHEMA)
        # One file a batch: batch N is file N, easy to follow.
        .option("maxFilesPerTrigger", options.max_files)
        .option("latestFirst", options.latest_first)
        # A line that is no event ends the query; the default would make it a row of nulls, silently.
        .option("mode", "FAILFAST")
    )
    if options.max_file_age is not None:
        reader = reader.option("maxFileAge", options.max_file_age)
    # An event without devices stays a row: explode alone would drop it.
    device = F.explode_outer("data.devices").alias("device")
    return reader.json(str(options.input)).select("eventId", device).select("eventId", "device.*")


def start(rows: DataFrame, options: DeviceOptions) -> StreamingQuery:
    """Start the query: every file that is there now, then the end."""
    writer = rows.writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(options.checkpoint))
    if options.sink == CONSOLE:
        return writer.format("console").option("truncate", "false").start()
    if options.sink == FILES:
        return writer.format("json").option("path", str(options.output)).start()
    return writer.foreachBatch(_BATCH_SINKS[options.sink](options)).start()


def _append(options: DeviceOptions) -> Callable[[DataFrame, int], None]:
    """Naive: a batch that runs again appends its rows again."""

    def append(batch: DataFrame, _batch_id: int) -> None:
        batch.write.mode("append").json(str(options.output))

    return append


def _overwrite(options: DeviceOptions) -> Callable[[DataFrame, int], None]:
    """Idempotent: a batch that runs again replaces its own folder."""

    def overwrite(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(f"{options.output}/{BATCH_FOLDER}{batch_id}")

    return overwrite


def _delta(options: DeviceOptions) -> Callable[[DataFrame, int], None]:
    """Idempotent: Delta skips a write whose txnVersion is not above the last one of its txnAppId.

    The id is the checkpoint's own: after a start with a new checkpoint, batch ids begin again at 0, and under
    an old id Delta would skip them all.
    """

    def append(batch: DataFrame, batch_id: int) -> None:
        query_id = json.loads((options.checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
        writer = batch.write.format("delta").mode("append")
        writer.option("txnAppId", query_id).option("txnVersion", batch_id).save(str(options.output))

    return append


_BATCH_SINKS = {FOREACH_APPEND: _append, FOREACH_OVERWRITE: _overwrite, DELTA: _delta}


def parse(arguments: list[str] | None) -> DeviceOptions:
    """Read the flags. Ends the process with code 2 and one line when they make no sense."""
    parser = Flags(NAME, prog="scripts/devices_file_stream.sh", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--input", type=Path, required=True, metavar="DIR", help="folder of JSON files")
    parser.add_argument("--checkpoint", type=Path, required=True, metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="DIR", help="needed by every sink but the console")
    parser.add_argument("--sink", choices=SINKS, default=FILES, help="default: %(default)s")
    parser.add_argument("--max-files", type=int, default=1, metavar="N", help="files a batch (default: %(default)s)")
    parser.add_argument("--max-file-age", metavar="INTERVAL", help="older files are ignored (Spark's default: 7d)")
    parser.add_argument("--latest-first", action="store_true", help="newest files first")
    chosen = DeviceOptions(**vars(parser.parse_args(arguments)))
    if chosen.sink != CONSOLE and chosen.output is None:
        parser.error(f"sink {chosen.sink} needs --output DIR")
    if chosen.max_files < 1:
        parser.error(f"--max-files {chosen.max_files} is not a whole number from 1 on")
    if not chosen.input.is_dir():
        parser.error(f"--input {chosen.input} is no folder; make it and put files of events into it")
    output = None if chosen.output is None else chosen.output.absolute()
    return replace(chosen, input=chosen.input.absolute(), checkpoint=chosen.checkpoint.absolute(), output=output)


def run(options: DeviceOptions, settings: Settings) -> int:
    """Run the query to its end; returns the exit code. Raises UserError when Spark does not start."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from spark_job.delta import DELTA_CONFIGURATION  # noqa: PLC0415
    from spark_job.session import check_java, configuration, first_line, launch  # noqa: PLC0415

    check_java()
    with tempfile.TemporaryDirectory(prefix="devices_") as scratch:
        query_options = replace(synchronizer_options([], settings), query="devices", checkpoint=options.checkpoint)
        conf = configuration(query_options, settings, Path(scratch)) | {"spark.ui.enabled": "false"}
        # Spark's own manager refuses a second writer; the synchronizer's does not, since it has a lock instead.
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
    try:
        return run(options, Settings())
    except (UserError, SettingsError) as error:
        fail(NAME, error)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
