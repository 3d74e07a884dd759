"""The checker of the source: topic `visits` against the generator's ledgers of what it sent."""

from __future__ import annotations

from faultline.settings import Settings
from faultline.verdict.checker import Behind, Checker, Options, Stopwatch, source_spans
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Judgement
from faultline.verdict.source.findings import judgement
from faultline.verdict.source.judge import SourceFacts, not_judged
from faultline.verdict.source.ledger import files_of, ledgers_of, load_ledgers
from faultline.verdict.source.reader import RECORDS, load_records, record_rows
from faultline.verdict.sources import Sources
from faultline.verdict.store import Store


class SourceChecker:
    """Judges the topic that the generator writes."""

    name = "source"
    parse = staticmethod(record_rows)

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self.source = settings.text("VISITS_TOPIC")
        self._folder, self._cluster = settings.ledger, cluster

    def behind(self) -> Behind | None:
        """The source is never behind: an acknowledged visit is there."""
        return None

    def judge(self, store: Store, sources: Sources, *, caught_up: bool) -> Judgement:
        """Read topic and ledgers and compare them; raises NotJudged when the topic has no ledger."""
        clock = Stopwatch()
        with clock.measure("reading"):
            topic_id = self._cluster.topic_id(self.source)
            chosen, others = ledgers_of(files_of(self._folder, self.source), topic_id)
            if not chosen:
                raise not_judged(self.source, others)
            spans = source_spans(self._cluster, self.source, caught_up=caught_up)
            load_records(store, sources.rows(self.source, spans, RECORDS, self.parse))
            # Ledgers are listed again and read after the topic: then each record that was read has its line.
            ledgers = load_ledgers(store, files_of(self._folder, self.source), topic_id)
        return judgement(store, self._cluster, SourceFacts(self.source, spans, ledgers, caught_up), clock)


def source(settings: Settings, cluster: Cluster, options: Options) -> Checker:  # noqa: ARG001  # it needs no options
    """Create the checker of the source."""
    return SourceChecker(settings, cluster)
