"""The streaming query: Kafka in, text lines out, one of three sinks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType

from faultline.storage.engines import spark_name
from spark_job.batch_sinks import append, overwrite
from spark_job.options import AVAILABLE_NOW, FILES, FOREACH_APPEND, Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_job.hold import Hold


def visits(spark: SparkSession, options: Options, bootstrap: str, topic: str) -> DataFrame:
    """Return the stream of the topic's values: one column, `value`, binary."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        # For the first start only; later starts use the checkpoint. Nothing that was sent is skipped.
        .option("startingOffsets", "earliest")
        # Missing offsets (retention, a recreated topic) fail the query: continuing would be a silent loss.
        .option("failOnDataLoss", "true")
        # Records of aborted transactions are not visits.
        .option("kafka.isolation.level", "read_committed")
        # Wait 20 minutes for a broker that restarts or is paused for a while.
        .option("fetchOffset.numRetries", "60")
        .option("fetchOffset.retryIntervalMs", "1000")
        # When one broker of several is gone, Kafka's admin client (3.9) goes on asking for that one, until this time
        # is over; only a new client asks the new leader. Its own 60 s would hold a batch back by a minute.
        .option("kafka.default.api.timeout.ms", "20000")
        # It must not be longer than the time of all attempts.
        .option("kafka.request.timeout.ms", "10000")
        # After each poll Spark queries the partition's range of offsets and seeks, which discards what was
        # fetched beyond it: so use few and large fetches, each polled as a whole.
        .option("kafka.max.partition.fetch.bytes", str(4 << 20))
        .option("kafka.max.poll.records", "100000")
        .option("kafka.receive.buffer.bytes", str(1 << 20))
    )
    if options.max_offsets_per_trigger is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(options.max_offsets_per_trigger))
    return reader.load().select("value")


def line(value: Column) -> Column:
    """Turn a record's value into its output line, byte for byte like `faultline.formats.visit.output_line`.

    A cast from binary to string keeps the bytes, valid UTF-8 or not. Regular expressions do not, so the few
    values with a CR or LF go through ISO-8859-1, in which every byte is a character and comes back unchanged.
    """
    text = value.cast("string")
    characters = F.decode(value, "ISO-8859-1")
    joined = F.encode(F.regexp_replace(characters, "[\r\n]+", " "), "ISO-8859-1").cast("string")
    broken = F.contains(text, F.lit("\n")) | F.contains(text, F.lit("\r"))
    return F.coalesce(F.when(broken, joined).otherwise(text), F.lit("")).alias("value")


def start(stream: DataFrame, options: Options, hold: Hold | None, *, only_interrupted: bool = False) -> StreamingQuery:
    """Start the query; with `only_interrupted`, only for the batch that the checkpoint has already planned."""
    if hold is not None and options.sink == FILES:
        stream = stream.select(F.udf(hold.in_task(), BinaryType())("value").alias("value"))
    writer = stream.select(line(F.col("value"))).writeStream.queryName(options.query).outputMode("append")
    writer = writer.option("checkpointLocation", spark_name(options.checkpoint))
    if only_interrupted:
        writer = writer.trigger(once=True)
    elif options.trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=options.trigger)
    if options.sink == FILES:
        # Text, not json: the lines are already JSON, and must stay the bytes that were sent.
        return writer.format("text").option("path", spark_name(options.output)).start()
    # The other sinks write to a disk only (spark_job/options.py).
    assert isinstance(options.output, Path)
    write = (append if options.sink == FOREACH_APPEND else overwrite)(options.output, "text")
    return writer.foreachBatch(_held(write, hold)).start()


def _held(write: Callable[[DataFrame, int], None], hold: Hold | None) -> Callable[[DataFrame, int], None]:
    def write_then_wait(batch: DataFrame, batch_id: int) -> None:
        write(batch, batch_id)
        if hold is not None:
            hold.wait(batch_id)

    return write_then_wait
