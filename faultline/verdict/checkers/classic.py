"""The checker of the classic Flink job: its progress, and its topics."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from faultline.formats.jobs import CLASSIC, settings_of
from faultline.settings import Settings
from faultline.verdict.checker import Checker, Options, Stopwatch, require_whole, source_spans
from faultline.verdict.checkers.flink import NOTHING_IS_DUE, FlinkChecker
from faultline.verdict.classic.judge import ClassicFacts, judge
from faultline.verdict.cluster import Cluster
from faultline.verdict.flink.reader import VISITS, WINDOWS, window_rows
from faultline.verdict.flink.tables import load_source, load_table
from faultline.verdict.model import Judgement
from faultline.verdict.sources import Sources
from faultline.verdict.store import Store


class ClassicChecker(FlinkChecker):
    """Judges the classic job by topic `visits` and its two output topics; how far it is behind as for the other job."""

    name = "classic"

    def __init__(self, settings: Settings, cluster: Cluster, options: Options) -> None:
        super().__init__(settings_of(CLASSIC, settings), cluster, options)
        self._outputs = self._run.late, self._run.windows

    def judge(self, store: Store, sources: Sources, *, caught_up: bool) -> Judgement:
        """Read the topics and judge them; the outputs first, so that the source has all records that they come from."""
        clock = Stopwatch()
        window_ms = self._rules.window_ms
        with clock.measure("reading"):
            committed = self._cluster.group_offsets(self._run.group_id, self.source)
            decided = self._decided() if committed and not caught_up else {}
            tables = (
                ("late", self._run.late, VISITS, self.parse),
                ("windows", self._run.windows, WINDOWS, partial(window_rows, window_ms=window_ms)),
            )
            outputs = {topic: self._cluster.spans(topic, committed=True) for topic in self._outputs}
            for table, topic, schema, parse in tables:
                require_whole(self._cluster, topic, outputs[topic])
                load_table(store, self._cluster, table, topic, outputs[topic], schema=schema, parse=parse)
            source = source_spans(self._cluster, self.source, caught_up=caught_up)
            visits = sources.rows(self.source, source, VISITS, self.parse)
            clocks = load_source(store, visits, source, rules=self._rules, arrivals=None)
        # A program without a group of its own is judged by all that it could read.
        ends = {partition: span.end for partition, span in source.items()}
        positions = {} if decided is None else decided or ends
        with clock.measure("judging"):
            closed = min((clock.ends[-1] if clock.ends else 0 for clock in clocks), default=0)
            facts = ClassicFacts(self._run.windows, self._run.late, window_ms, closed, positions, caught_up)
            judgement = judge(store, facts)
        if caught_up:
            self._require_rest(outputs)
        verdict = judgement.verdict
        notes = (*verdict.notes, NOTHING_IS_DUE) if decided is None else verdict.notes
        return replace(judgement, verdict=replace(verdict, notes=notes, seconds=clock.seconds))


def classic(settings: Settings, cluster: Cluster, options: Options) -> Checker:
    """Create the checker of the classic job."""
    return ClassicChecker(settings, cluster, options)
