"""Sources that a lab fills itself: it knows each sent row, and can query the rows still in the source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from confluent_kafka import Producer

from faultline.command import CommandError
from faultline.topic_reader import read
from labs.frame.dated_files import put

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KAFKA_SECONDS = 30


def values(bootstrap: str, topic: str) -> list[bytes | None]:
    """Return the value of each record that can be read from a topic now. Raises ReadError."""
    return [record.value() for records in read(bootstrap, topic) for record in records]


class Feed(Protocol):
    """A source. `sent`: every row that was ever sent, and how often; `size`: how many were sent so far."""

    sent: Counter[str]

    def send(self, rows: int) -> None:
        """Send new rows, all different."""

    def stream(self, spark: SparkSession, limit: int | None) -> DataFrame:
        """Return the stream of rows: one column, `value`, a string. `limit`: maximum rows per batch."""

    def held(self) -> Counter[str]:
        """Return the rows that can be read from the source now."""


def _new_rows(sent: Counter[str], rows: int) -> list[str]:
    begin = sent.total()
    return [f'{{"visit_id":"visit-{number:04}"}}' for number in range(begin, begin + rows)]


class KafkaFeed:
    """An existing topic. Rows go to the partitions in turn, so that each run of a lab has the same offsets."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, fail_on_data_loss: bool = True) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.fail_on_data_loss = fail_on_data_loss
        self.starting_offsets = "earliest"
        self.sent: Counter[str] = Counter()

    def send(self, rows: int) -> None:
        """Send and wait until the broker has all. Raises CommandError when it refuses one."""
        # A topic that was just created may need a retry; idempotent, so that no row is in the topic twice.
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0})
        refused: list[str] = []
        values = _new_rows(self.sent, rows)
        for number, value in enumerate(values, self.sent.total()):
            producer.produce(
                self.topic,
                value.encode(),
                partition=number % self.partitions,
                on_delivery=lambda error, _: refused.append(str(error)) if error else None,
            )
        if producer.flush(_KAFKA_SECONDS) or refused:
            raise CommandError(f"topic {self.topic} did not take all rows: {refused[:1]}")
        self.sent.update(values)

    def stream(self, spark: SparkSession, limit: int | None) -> DataFrame:
        """Read the topic with the relevant settings of the synchronizer (spark_job/query.py)."""
        reader = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("subscribe", self.topic)
            .option("startingOffsets", self.starting_offsets)
            .option("failOnDataLoss", str(self.fail_on_data_loss).lower())
            # The broker is up: waiting does not change its answer.
            .option("fetchOffset.numRetries", "1")
            .option("fetchOffset.retryIntervalMs", "200")
        )
        if limit is not None:
            reader = reader.option("maxOffsetsPerTrigger", limit)
        return reader.load().selectExpr("CAST(value AS STRING) AS value")

    def held(self) -> Counter[str]:
        """Read the topic from its beginning to its present end."""
        return Counter((value or b"").decode() for value in values(self.bootstrap, self.topic))


class FileFeed:
    """A folder of text files, one file for each `send`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sent: Counter[str] = Counter()
        folder.mkdir(parents=True)

    def send(self, rows: int) -> None:
        """Write the rows to a new file."""
        number = len(list(self.folder.iterdir()))
        values = _new_rows(self.sent, rows)
        put(self.folder / f"visits-{number:02}.txt", values, number)
        self.sent.update(values)

    def stream(self, spark: SparkSession, limit: int | None) -> DataFrame:
        """Read the folder; `limit` is in files here, one for each `send`."""
        reader = spark.readStream.schema("value STRING")
        if limit is not None:
            reader = reader.option("maxFilesPerTrigger", 1)
        return reader.text(str(self.folder))

    def held(self) -> Counter[str]:
        """Read all files."""
        return Counter(row for file in self.folder.iterdir() for row in file.read_text("utf-8").splitlines())
