"""One case of the catalogue, and the bench that it is run on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from faultline.settings import Settings
from labs.frame.broker import Broker
from labs.frame.count import compare
from labs.frame.failure import Failure, failure_of
from labs.frame.feeds import Feed, FileFeed, KafkaFeed
from labs.frame.folder import LabFolder
from labs.frame.pipeline import APPEND, FILE_SINK, Pipeline, RunResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES, ROWS = 4, 10
"""Data at the start of each case: batches 0 to 3, of 10 rows each, all committed and all in the output."""
PARTITIONS = 2
SPARK: dict[str, str | None] = {
    # Spark's own default on a local disk, not the manager that the synchronizer chooses for speed: the table
    # is about the Spark that people run. The choice decides how files are renamed, not what a restart reads.
    "spark.sql.streaming.checkpointFileManagerClass": None,
    # The table says what Spark does; thousands of lines of stack traces would not help.
    "spark.log.level": "OFF",
}


@dataclass
class Bench:
    """Workplace of a case: its own topic or folder, checkpoint and output, and the lab around the case."""

    spark: SparkSession
    broker: Broker
    folder: LabFolder
    settings: Settings
    pipeline: Pipeline

    @property
    def checkpoint(self) -> Path:
        """The checkpoint's folder."""
        return self.pipeline.checkpoint

    @property
    def topic(self) -> KafkaFeed:
        """The feed of a case that reads Kafka."""
        assert isinstance(self.pipeline.feed, KafkaFeed)
        return self.pipeline.feed


Around = tuple["SparkSession", Broker, LabFolder, Settings]
"""The lab around a bench, shared by all."""


def run_again(bench: Bench) -> RunResult:
    """Start the query again on what is left, and let it read all there is."""
    return bench.pipeline.run()


@dataclass(frozen=True)
class Case:
    """`what` was done (the table's first column), and what to do in production (its last).

    `damage` does it; then `arriving` rows come in; then `start`, with no limit per batch unless it sets one.
    `settings`: of the session of this case's queries.
    """

    name: str
    what: str
    production: str
    damage: Callable[[Bench], object]
    sinks: tuple[str, ...] = (APPEND, FILE_SINK)
    files: bool = False
    fail_on_data_loss: bool = True
    shape: Callable[[DataFrame], DataFrame] = lambda stream: stream
    settings: dict[str, str] = field(default_factory=dict)
    arriving: int = ROWS
    start: Callable[[Bench], RunResult] = run_again


@dataclass(frozen=True)
class Group:
    """Cases of one table."""

    title: str
    words: str
    cases: list[Case] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """One row of the document. Counts are of rows of the source, sent once each.

    `waiting`: not in the output when Spark stopped, but still in the source and never processed.
    `reader`: why Spark cannot read the output folder, where it cannot; the files were counted then.
    """

    case: Case
    sink: str
    outcome: RunResult
    lost: int
    waiting: int
    duplicated: int
    reader: Failure | None


def measure(case: Case, sink: str, bench: Bench) -> Measured:
    """Prepare, damage, start, count. Raises AssertionError when the preparation itself is not clean."""
    pipeline = bench.pipeline
    for _ in range(BATCHES):
        pipeline.feed.send(ROWS)
    begun = pipeline.run(limit=ROWS)
    assert begun.failure is None, begun
    assert [batch.rows for batch in begun.batches if batch.rows] == [ROWS] * BATCHES, begun
    settled = pipeline.rows()
    assert compare(pipeline.feed.sent, settled).clean, settled
    case.damage(bench)
    if case.arriving:
        pipeline.feed.send(case.arriving)
    outcome = case.start(bench)
    rows, reader = _read(pipeline)
    difference = compare(pipeline.feed.sent, rows)
    assert not difference.unexpected, difference
    # Only a query that stopped can read more rows later; one that runs has skipped what is missing.
    later = difference.lost - settled if outcome.failure else Counter[str]()
    if later:
        later &= pipeline.feed.held()
    return Measured(
        case,
        sink,
        outcome,
        difference.lost.total() - later.total(),
        later.total(),
        difference.duplicated.total(),
        reader,
    )


def _read(pipeline: Pipeline) -> tuple[Counter[str], Failure | None]:
    try:
        return pipeline.rows(), None
    except (PySparkException, Py4JJavaError) as error:
        return pipeline.lines(), failure_of(None, error)


def bench_for(case: Case, sink: str, around: Around) -> Bench:
    """Make a bench for one case and sink: its own folder, and its own topic or input folder."""
    spark, broker, folder, settings = around
    name = f"{case.name}-{sink.split(maxsplit=1)[0]}"
    own = folder / name
    own.mkdir()
    feed: Feed
    if case.files:
        feed = FileFeed(own / "input")
    else:
        broker.create_topic(name, PARTITIONS)
        feed = KafkaFeed(broker.bootstrap, name, PARTITIONS, fail_on_data_loss=case.fail_on_data_loss)
    # A new session has its own settings, in the same JVM.
    session = spark.newSession() if case.settings else spark
    for setting, value in case.settings.items():
        session.conf.set(setting, value)
    return Bench(session, broker, folder, settings, Pipeline(session, feed, own, sink, case.shape))
