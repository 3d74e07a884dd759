"""Changed logic on an old checkpoint: what Spark accepts, what it refuses, and what it wrongly accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from faultline.inspector.spark.log import read_lines
from faultline.storage.batches import newest_batch
from labs.frame.count import compare
from labs.frame.failure import Failure, failure_of
from labs.frame.pipeline import FILE_SINK, Pipeline
from labs.frame.story import Fact, same

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from labs.frame.feeds import KafkaFeed
    from labs.frame.story import Story

    MakeFeed = Callable[[str], KafkaFeed]

FIRST, LATER = 40, 10
"""Rows that the old query reads, and rows that the changed one reads."""
_PINNED = "spark.sql.shuffle.partitions"


def added_column(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Add a column to a query without state."""
    story.step("One more column, in a query without state")
    feed = make_feed("added-column")
    pipeline = Pipeline(spark, feed, folder, FILE_SINK, format="json")
    feed.send(FIRST)
    pipeline.run()
    pipeline.shape = lambda stream: stream.withColumn("bytes", F.octet_length("value"))
    feed.send(LATER)
    outcome = pipeline.run()
    table = spark.read.json(str(pipeline.output))
    story.say(f"started again with the column `bytes`: {', '.join(map(str, outcome.batches))}")
    difference = compare(feed.sent, pipeline.rows())
    story.prove(
        "A query without state accepts a new column from the next batch on; older rows do not have it.",
        Fact(str(difference), difference.clean),
        same("why it stopped", outcome.failure, None),
        same("rows with the column", table.where("bytes IS NOT NULL").count(), LATER),
        same("rows without it", table.where("bytes IS NULL").count(), FIRST),
    )


def aggregations(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Change an aggregation: one more, another key, another function of the same type."""
    story.step("Another aggregation on the same state")
    number = F.regexp_extract("value", r"(\d+)", 1).cast("bigint")
    parity = (number % 2).alias("key")
    total = F.sum(number).alias("result")
    changes: dict[str, tuple[Column, list[Column]]] = {
        "one aggregation more": (parity, [total, F.count("*").alias("rows")]),
        "a key of another type": (parity.cast("string").alias("key"), [total]),
        "max instead of sum": (parity, [F.max(number).alias("result")]),
    }
    seen: dict[str, Failure | None] = {}
    results: list[int] = []
    for position, (name, (key, columns)) in enumerate(changes.items()):
        feed, own = make_feed(f"aggregation-{position}"), folder / str(position)
        feed.send(FIRST)
        _aggregate(spark, feed, own, parity, [total])
        feed.send(LATER)
        seen[name] = _aggregate(spark, feed, own, key, columns)
        story.say(f"{name}: {seen[name] or 'silently accepted'}")
        results = [row.result for row in spark.read.json(str(own / "output")).orderBy("key").collect()]
    rows = range(FIRST + LATER)
    story.prove(
        "A change that alters the rows of the state is refused with a named error.",
        same("one aggregation more", _class(seen["one aggregation more"]), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"),
        same("a key of another type", _class(seen["a key of another type"]), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    )
    story.prove(
        "A change that keeps the types is accepted, and its result matches neither query.",
        same("max instead of sum, why it stopped", seen["max instead of sum"], None),
        same("result for even and odd", results, [max(sum(rows[:FIRST][odd::2]), rows[odd::2][-1]) for odd in (0, 1)]),
        Fact(
            f"neither the sums {[sum(rows[odd::2]) for odd in (0, 1)]} nor the maxima "
            f"{[max(rows[odd::2]) for odd in (0, 1)]} of all rows",
            results not in ([sum(rows[odd::2]) for odd in (0, 1)], [max(rows[odd::2]) for odd in (0, 1)]),
        ),
    )


def _class(failure: Failure | None) -> str | None:
    return failure.condition if failure else None


def _aggregate(
    spark: SparkSession, feed: KafkaFeed, folder: Path, key: Column, columns: list[Column]
) -> Failure | None:
    """Aggregate everything, the whole result replaced in each batch; returns why it stopped."""

    def replace(rows: DataFrame, _batch_id: int) -> None:
        rows.write.mode("overwrite").json(str(folder / "output"))

    query: StreamingQuery | None = None
    try:
        stream = feed.stream(spark, None).groupBy(key).agg(*columns)
        writer = stream.writeStream.outputMode("complete").option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.foreachBatch(replace).start()
        query.processAllAvailable()
    except (PySparkException, Py4JJavaError) as error:
        return failure_of(query, error)
    query.stop()
    return None


def shuffle_partitions(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Configure more shuffle partitions for a query whose state has two."""
    story.step("More shuffle partitions")
    feed = make_feed("shuffle-partitions")
    pipeline = Pipeline(spark, feed, folder / "old", FILE_SINK, lambda stream: stream.dropDuplicates(["value"]))
    feed.send(FIRST)
    pipeline.run()
    before = spark.conf.get(_PINNED)
    asked = str(2 * int(before or 0) + 1)
    try:
        spark.conf.set(_PINNED, asked)
        feed.send(LATER)
        pipeline.run()
        fresh = Pipeline(spark, feed, folder / "new", FILE_SINK, pipeline.shape)
        fresh.run()
    finally:
        spark.conf.set(_PINNED, str(before))
    offsets = pipeline.checkpoint / "offsets"
    newest = newest_batch(offsets)
    pinned = json.loads(read_lines(offsets, str(newest))[0])["conf"][_PINNED]
    story.say(f"configured {before}, then {asked}; offsets/{newest} says {pinned}")
    difference = compare(feed.sent, pipeline.rows())
    story.prove(
        "The number of shuffle partitions is pinned by the first batch; only a new checkpoint uses another.",
        same(f"old checkpoint, {_PINNED} in offsets/{newest}", pinned, before),
        same("old checkpoint, partitions of state", _state_partitions(pipeline), before),
        same("new checkpoint, partitions of state", _state_partitions(fresh), asked),
        Fact(f"old checkpoint: {difference}", difference.clean),
    )


def _state_partitions(pipeline: Pipeline) -> str:
    return str(len(list((pipeline.checkpoint / "state" / "0").glob("[0-9]*"))))


def changed_topic(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Let the query of an old checkpoint read another topic, with failOnDataLoss true and false."""
    story.step("Another topic on the same checkpoint")
    stopped: dict[bool, Failure | None] = {}
    clean: dict[bool, Fact] = {}
    for fail in (True, False):
        first = make_feed(f"topic-before-{str(fail).lower()}")
        second = make_feed(f"topic-after-{str(fail).lower()}")
        first.fail_on_data_loss = second.fail_on_data_loss = fail
        pipeline = Pipeline(spark, first, folder / str(fail).lower(), FILE_SINK)
        first.send(FIRST)
        pipeline.run()
        # Not read when the query switches topics; the numbers of rows tell which topic they came from.
        first.send(LATER)
        second.sent.update(first.sent)
        second.send(LATER)
        pipeline.feed = second
        outcome = pipeline.run()
        stopped[fail] = outcome.failure
        difference = compare(second.sent, pipeline.rows())
        clean[fail] = same(
            f"failOnDataLoss={str(fail).lower()}: {'not read yet' if fail else 'lost'}, duplicated",
            (difference.lost.total(), difference.duplicated.total()),
            (2 * LATER, 0) if fail else (LATER, 0),
        )
        story.say(f"failOnDataLoss={str(fail).lower()}: {outcome.failure or 'accepted'}; {difference}")
    story.prove(
        "Another topic stops the query; with failOnDataLoss=false it reads the new topic from its beginning "
        "and skips what it had not read of the old one.",
        same("failOnDataLoss=true", _class(stopped[True]), "KAFKA_DATA_LOSS.PARTITIONS_DELETED"),
        same("failOnDataLoss=false, why it stopped", stopped[False], None),
        *clean.values(),
    )


CHANGES = [added_column, aggregations, shuffle_partitions, changed_topic]
"""In the order of the lab; each has a folder named after it."""
