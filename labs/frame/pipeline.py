"""A streaming query of a lab: a feed as source, a real sink, a checkpoint, and the count of its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from labs.frame.failure import Failure, failure_of
from labs.frame.feeds import Feed
from labs.frame.progress import Batch, batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

APPEND = "foreachBatch append"
FILE_SINK = "file sink"


@dataclass(frozen=True)
class RunResult:
    """The batches that ran, and why it stopped; `failure` None: it read everything.

    `before`: a text about another query, if there are two.
    """

    batches: list[Batch]
    failure: Failure | None = None
    before: str = ""

    def __str__(self) -> str:
        ran = ", ".join(f"batch {batch.id} ({batch.rows} rows)" for batch in self.batches)
        words = f"runs {ran}" if ran else "" if self.failure else "runs no batch"
        if self.failure:
            words = f"{words}, then stops: {self.failure}" if ran else f"stops: {self.failure}"
        return f"{self.before}{words}"


@dataclass
class Pipeline:
    """`folder` gets `checkpoint/` and `output/`. `sink`: APPEND or FILE_SINK. `shape`: the query between them.

    `before_write(batch id)` is called in each batch, planned and not yet written; APPEND only.
    `format`: of the files in `output/`; `text` allows only one column.
    """

    spark: SparkSession
    feed: Feed
    folder: Path
    sink: str
    shape: Callable[[DataFrame], DataFrame] = lambda stream: stream
    before_write: Callable[[int], None] = lambda _: None
    format: str = "text"
    checkpoint: Path = field(init=False)
    output: Path = field(init=False)

    def __post_init__(self) -> None:
        self.checkpoint, self.output = self.folder / "checkpoint", self.folder / "output"

    def start(self, limit: int | None = None) -> StreamingQuery:
        """Start the query; it runs until it is stopped. `limit`: maximum rows per batch."""
        stream = self.shape(self.feed.stream(self.spark, limit))
        writer = stream.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(
            processingTime="0 seconds"
        )
        if self.sink == FILE_SINK:
            return writer.format(self.format).start(str(self.output))

        def append(rows: DataFrame, batch_id: int) -> None:
            self.before_write(batch_id)
            rows.write.mode("append").format(self.format).save(str(self.output))

        return writer.foreachBatch(append).start()

    def run(self, limit: int | None = None) -> RunResult:
        """Start the query, let it read everything, and stop it."""
        query: StreamingQuery | None = None
        try:
            query = self.start(limit)
            return finish(query)
        except (PySparkException, Py4JJavaError) as error:
            return RunResult(batches(query) if query is not None else [], failure_of(query, error))

    def rows(self) -> Counter[str]:
        """Read the output like any reader: without the sink's log, all files.

        With its log (`_spark_metadata`) only the files that it names. Raises Spark's error when it cannot be read.
        """
        if not any(self.output.glob("[!.]*")):
            return Counter()
        return Counter(str(row.value) for row in self.spark.read.format(self.format).load(str(self.output)).collect())

    def lines(self) -> Counter[str]:
        """Read every data file in the output folder, ignoring the sink's log."""
        files = self.output.rglob("part-*.txt")
        return Counter(row for file in files for row in file.read_text("utf-8").splitlines())


def finish(query: StreamingQuery) -> RunResult:
    """Let a query read everything, and stop it; the outcome has a failure when it stops by itself."""
    try:
        query.processAllAvailable()
    except (PySparkException, Py4JJavaError) as error:
        return RunResult(batches(query), failure_of(query, error))
    query.stop()
    return RunResult(batches(query))
