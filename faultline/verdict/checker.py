"""The checker of one pipeline, and the rules for all of them: wait until it has caught up, then judge."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from faultline.formats.verdict import Outcome
from faultline.settings import Settings
from faultline.storage.location import Location
from faultline.verdict.cluster import Cluster
from faultline.verdict.loading import Parse
from faultline.verdict.model import Judgement, Unknown, plural
from faultline.verdict.records import Span, Spans
from faultline.verdict.sources import Quiescence, Sources
from faultline.verdict.store import Store
from faultline.waiting import Waiting, attempts

LOOK_SECONDS = 0.5
"""Pause between two looks at a pipeline that is behind."""


@dataclass(frozen=True)
class Options:
    """Options of the command line; None: use the run's own settings."""

    sink: str | None = None
    output: Location | None = None
    checkpoint: Location | None = None
    as_is: bool = False
    wait_seconds: float = 30.0


@dataclass(frozen=True)
class Behind:
    """A pipeline that has not committed everything.

    `text`: one sentence; `position`: its progress, to see it move; `offsets`: how many it still has to commit.
    """

    text: str
    position: object
    offsets: int = 0


@dataclass
class Stopwatch:
    """Seconds that reading and judging took."""

    seconds: dict[str, float] = field(default_factory=lambda: {"reading": 0.0, "judging": 0.0})

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Add the time of a block."""
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] += time.monotonic() - begin


class Checker(Protocol):
    """Judges one pipeline. A new pipeline is one more class with these members, in faultline/verdict/checkers."""

    name: str
    source: str
    """Topic that the pipeline reads."""

    @property
    def parse(self) -> Parse:
        """Makes the rows that the checker needs of the records of its source."""
        ...

    def behind(self) -> Behind | None:
        """Return how far the pipeline is behind the source; None when it has committed everything."""
        ...

    def judge(self, store: Store, sources: Sources, *, caught_up: bool) -> Judgement:
        """Read everything and judge it.

        With `caught_up`, every missing record is lost; otherwise only those that the records prove to be due.
        Raises Unknown when something cannot be read, and Moved when a pipeline wrote meanwhile.
        """
        ...


class Build(Protocol):
    """Creates a checker; raises Unknown when the settings contradict each other."""

    def __call__(self, settings: Settings, cluster: Cluster, options: Options) -> Checker:
        """Create the checker of one pipeline."""
        ...


class Moved(Unknown):
    """A pipeline wrote while it was judged: judge again."""


def judge(checker: Checker, sources: Sources, store: Store, options: Options) -> Judgement:
    """Wait until the pipeline has caught up, then judge it; raises Unknown when it cannot be judged.

    A pipeline that is behind when the wait is over is judged by its records so far: it can be violated, but not hold.
    """
    deadline = time.monotonic() + options.wait_seconds
    if options.as_is:
        return _as_is(checker, sources, store, deadline)
    quiescence = sources.quiescence(checker.source)
    while True:
        behind = await_caught_up(checker, quiescence, deadline)
        try:
            judgement = checker.judge(store, sources, caught_up=behind is None)
            quiescence.require()
        except Moved:
            if time.monotonic() >= deadline:
                raise
            continue
        return judgement if behind is None else _not_holding(judgement, behind)


def _as_is(checker: Checker, sources: Sources, store: Store, deadline: float) -> Judgement:
    while True:
        try:
            return checker.judge(store, sources, caught_up=False)
        except Moved:
            if time.monotonic() >= deadline:
                raise


def await_caught_up(checker: Checker, quiescence: Quiescence | None, deadline: float) -> Behind | None:
    """Wait until the pipeline has committed everything; return what is missing when the deadline passes first.

    Raises Unknown when the source grows meanwhile (unless `quiescence` is None).
    """
    begin = moved = time.monotonic()
    last: Behind | None = None
    waiting = Waiting()
    for _ in attempts(deadline - begin, LOOK_SECONDS):
        if last is not None and quiescence is not None:
            quiescence.require()
        now = checker.behind()
        if now is None:
            return None
        if last is not None and now.position != last.position:
            moved = time.monotonic()
        last = now
        # The next step is printed only at the end of the wait.
        waiting.say(f"{checker.name}: {last.text.partition(';')[0]}")
    waited, still = time.monotonic() - begin, time.monotonic() - moved
    if last is None or waited < 1:
        return last
    # `moved` is still `begin` when it has not moved since the wait began.
    standing = f"it has not moved in {still:.0f} s of waiting" if moved == begin else f"it moved last {still:.0f} s ago"
    return replace(last, text=f"{last.text}; {standing}")


def _not_holding(judgement: Judgement, behind: Behind) -> Judgement:
    """Make the outcome unknown when a pipeline is behind and would hold."""
    if judgement.verdict.outcome is Outcome.VIOLATED:
        return judgement
    return replace(judgement, verdict=replace(judgement.verdict, outcome=Outcome.UNKNOWN, reason=behind.text))


def lag(cluster: Cluster, topic: str, reached: Mapping[int, int]) -> tuple[int, int] | None:
    """Compare a pipeline's committed offsets with a topic: offsets read and offsets in total, or None at the end.

    The offsets in between may be only transaction markers: then the pipeline has read every record.
    """
    ends = cluster.spans(topic, committed=True)
    missing = [
        partition
        for partition, span in ends.items()
        if reached.get(partition, 0) < span.end
        and cluster.first_record(topic, partition, Span(max(reached.get(partition, 0), span.begin), span.end))
    ]
    if not missing:
        return None
    read = sum(
        min(reached.get(partition, 0), span.end) if partition in missing else span.end
        for partition, span in ends.items()
    )
    return read, sum(span.end for span in ends.values())


START_CLEAN = "start clean (scripts/down.sh --wipe)"


def require_whole(cluster: Cluster, topic: str, spans: Spans, remedy: str = START_CLEAN) -> None:
    """Raise Unknown when records of a topic are gone, or may be: their outputs can no longer be judged.

    `remedy`: the next step, which ends the message.
    """
    for partition, span in spans.items():
        if span.begin > 0:
            raise Unknown(
                f"{topic} partition {partition} begins at offset {span.begin}: its first records were deleted, "
                f"so they cannot be judged; {remedy}"
            )
    if cluster.is_compacted(topic):
        raise Unknown(
            f"topic {topic} is compacted (cleanup.policy), so records may be gone from its middle, which cannot be "
            f"judged; set cleanup.policy=delete, and {remedy}"
        )


def source_spans(cluster: Cluster, topic: str, *, caught_up: bool, remedy: str = START_CLEAN) -> Spans:
    """Return the spans of a topic whose committed records are judged.

    Raises Unknown when its records are gone, or, with `caught_up`, when an open transaction hides some of them.
    """
    spans = cluster.spans(topic, committed=True)
    require_whole(cluster, topic, spans, remedy)
    hidden = cluster.open_transactions(topic) if caught_up else {}
    for partition, span in hidden.items():
        raise Unknown(
            f"topic {topic} partition {partition} has an open transaction from offset {span.begin}: "
            f"{plural(span.end - span.begin, 'offset')} after it cannot be read and judged; commit or abort it"
        )
    return spans
