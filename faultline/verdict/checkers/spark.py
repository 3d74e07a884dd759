"""The checker of the Spark synchronizer: topic `visits` against the lines of its output and its checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from faultline.settings import Settings
from faultline.verdict.checker import Behind, Checker, Options, Stopwatch, lag, source_spans
from faultline.verdict.cluster import Cluster
from faultline.verdict.loading import Rows, TopicReader
from faultline.verdict.model import Judgement, plural
from faultline.verdict.records import Spans
from faultline.verdict.sources import Sources
from faultline.verdict.spark.checkpoint import newest_commit, refuse_foreign
from faultline.verdict.spark.findings import judgement
from faultline.verdict.spark.judge import SparkFacts
from faultline.verdict.spark.locations import Locations, locations
from faultline.verdict.spark.output import list_output
from faultline.verdict.spark.reader import SENT, load_lines, load_sent, sent_rows
from faultline.verdict.store import Store

Source = Callable[[], tuple[Spans, tuple[str, ...]]]
"""Returns the spans of the source, with notes about what they leave out."""
Read = Callable[[Spans], Rows]
"""Reads these spans of the source as rows of SENT."""


def judge_output(
    store: Store, reader: TopicReader, where: Locations, source: Source, read: Read, *, caught_up: bool
) -> Judgement:
    """Read checkpoint, output and topic, and judge them.

    The order matters: batches that are committed in the checkpoint are in the output that is read after it, and all
    lines found there were sent before the source is read. Raises Unknown when something cannot be read.
    """
    clock = Stopwatch()
    with clock.measure("reading"):
        commit = newest_commit(where.checkpoint, where.topic)
        output = list_output(where.output, where.sink, None if commit is None else commit.batch)
        load_lines(store, output.files)
        spans, notes = source()
        if commit is not None:
            refuse_foreign(where.checkpoint, commit, where.topic, spans)
        load_sent(store, read(spans))
    return judgement(store, reader, SparkFacts(where, commit, spans, output, caught_up, notes), clock)


class SparkChecker:
    """Judges one query of the synchronizer."""

    name = "spark"
    parse = staticmethod(sent_rows)

    def __init__(self, cluster: Cluster, where: Locations) -> None:
        self.source = where.topic
        self._cluster, self._places = cluster, where

    def behind(self) -> Behind | None:
        """Return how far the query is behind the source: offsets that its newest committed batch does not cover."""
        topic, checkpoint = self.source, self._places.checkpoint
        commit = newest_commit(checkpoint, topic)
        if commit is not None:
            refuse_foreign(checkpoint, commit, topic, self._cluster.spans(topic, committed=False))
        missing = lag(self._cluster, topic, commit.ends if commit else {})
        if missing is None:
            return None
        next_step = "start it with scripts/spark_start.sh"
        read, total = missing
        if commit is None:
            return Behind(f"no batch is committed in {checkpoint}; {next_step}", None, total)
        return Behind(
            f"the synchronizer has committed {read:,} of {total:,} offsets of {topic}, batch {commit.batch} the last, "
            f"at {commit.at}; {next_step}",
            commit,
            total - read,
        )

    def judge(self, store: Store, sources: Sources, *, caught_up: bool) -> Judgement:
        """Read everything and judge it."""
        return judge_output(
            store,
            self._cluster,
            self._places,
            lambda: self._source(caught_up=caught_up),
            lambda spans: sources.rows(self.source, spans, SENT, self.parse),
            caught_up=caught_up,
        )

    def _source(self, *, caught_up: bool) -> tuple[Spans, tuple[str, ...]]:
        spans = source_spans(self._cluster, self.source, caught_up=caught_up)
        hidden = {} if caught_up else self._cluster.open_transactions(self.source)
        notes = tuple(
            f"topic {self.source} partition {partition} has an open transaction from offset {span.begin}: "
            f"{plural(span.end - span.begin, 'offset')} after it cannot be read and were not judged"
            for partition, span in hidden.items()
        )
        return spans, notes


def spark(settings: Settings, cluster: Cluster, options: Options) -> Checker:
    """Create the checker of a query; raises Unknown when its settings contradict each other."""
    return SparkChecker(cluster, locations(settings, options))
