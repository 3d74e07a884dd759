"""The sources of one verdict, which its checkers share: one read of each topic, and the first look at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from faultline.verdict.cluster import Cluster
from faultline.verdict.loading import Chunk, Parse, topic_chunks, topic_rows
from faultline.verdict.model import Unknown
from faultline.verdict.records import Batch, Span, Spans, size

KEPT_RECORDS = 4_000_000
"""Their rows take 800 MB, which in a container is its memory."""
QUIESCENT_SECONDS = 1.0
"""The minimum time between two looks at the source: long enough to notice a slow generator."""


def growing(topic: str) -> Unknown:
    """Build the error for a source that grows while it is judged."""
    return Unknown(
        f"topic {topic} grew during the verdict; stop the generator (scripts/generator_stop.sh) and judge again, "
        "or judge the running pipeline with --as-is"
    )


class Quiescence:
    """Stores the end of a topic when created, and later checks whether it has changed."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._first = self._look()
        self._seen_at = time.monotonic()

    def _look(self) -> Spans:
        return self._cluster.spans(self._topic, committed=False)

    def require(self) -> None:
        """Raise Unknown when the topic has grown; looks again at least QUIESCENT_SECONDS after the first look."""
        time.sleep(max(0.0, self._seen_at + QUIESCENT_SECONDS - time.monotonic()))
        if self._look() != self._first:
            raise growing(self._topic)


@dataclass(frozen=True)
class _Together:
    """Several readings of one batch as one table; a column that two of them have is the same in both."""

    parses: tuple[Parse, ...]

    def __call__(self, batch: Batch) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = {}
        for parse in self.parses:
            rows = parse(batch)
            columns = {**dict(zip(rows.schema.names, rows.columns, strict=True)), **columns}
        return pa.record_batch(list(columns.values()), names=list(columns))


@dataclass
class _Source:
    """One topic: how it is read, and what was read so far."""

    parses: list[Parse] = field(default_factory=list)
    topic_id: str = ""
    kept: list[tuple[int, Chunk]] = field(default_factory=list)
    """Chunks with their partition."""
    ends: dict[int, int] = field(default_factory=dict)
    """The offset of each partition up to which its rows are kept."""
    quiescence: Quiescence | None = None


class Sources:
    """The topics that the checkers of one verdict read.

    What one checker has read, the next one does not read again: it reads on from there when the topic has grown. Each
    checker reads a topic of more than KEPT_RECORDS.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self._folder = cluster, folder
        self._topics: dict[str, _Source] = {}

    def add(self, topic: str, parse: Parse) -> None:
        """Let the read of a topic make these rows, too; before the first call of `rows`."""
        self._source(topic).parses.append(parse)

    def _source(self, topic: str) -> _Source:
        return self._topics.setdefault(topic, _Source())

    def quiescence(self, topic: str) -> Quiescence:
        """Return the look at the end of a topic, which the first call takes. Raises Unknown."""
        source = self._source(topic)
        source.quiescence = source.quiescence or Quiescence(self.cluster, topic)
        return source.quiescence

    def rows(self, topic: str, spans: Spans, schema: pa.Schema, parse: Parse) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows of the spans, each of which begins at 0: the partition, and the columns of the schema.

        Within a partition in the order of offsets. `parse` makes these columns; where it was not added, or the topic is
        too large to keep, the topic is read for it alone. Raises Unknown when something cannot be read.
        """
        source = self._source(topic)
        if parse not in source.parses or size(spans) > KEPT_RECORDS:
            yield from topic_rows(self.cluster, topic, spans, parse, self._folder)
            return
        topic_id = self.cluster.topic_id(topic)
        if source.topic_id != topic_id:
            # Another topic of this name: the records at the same offsets are other ones.
            source.topic_id, source.kept, source.ends = topic_id, [], {}
        for partition, chunk in source.kept:
            if (rows := _up_to(chunk.rows(), spans[partition].end)).num_rows:
                yield partition, rows.select(schema.names)
        rest = {
            partition: Span(source.ends.get(partition, span.begin), span.end)
            for partition, span in spans.items()
            if source.ends.get(partition, span.begin) < span.end
        }
        read: list[tuple[int, Chunk]] = []
        together = _Together(tuple(source.parses))
        for partition, chunk in topic_chunks(self.cluster, topic, rest, together, self._folder):
            read.append((partition, chunk))
            yield partition, chunk.rows().select(schema.names)
        source.kept += read
        source.ends |= {partition: span.end for partition, span in rest.items()}


def _up_to(rows: pa.Table, end: int) -> pa.Table:
    offsets = rows["kafka_offset"]
    return rows if offsets[-1].as_py() < end else rows.filter(pc.less(offsets, end))
