"""Faultless synchronizers are never called violated: killed attempts, empty batches, a batch that is being written."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.formats.verdict import Outcome, Verdict
from faultline.verdict.model import Unknown
from tests.judge.spark_world import (
    FILES,
    FOREACH_APPEND,
    FOREACH_OVERWRITE,
    Batch,
    Query,
    Topic,
    judge_output,
    part_name,
    visit,
    write_output,
)
from tests.judge.synchronizer_mutants import METADATA
from tests.judge.windows_runs import UNPARSABLE
from tests.judge.windows_worlds import examples, says

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Leftover:
    """The part of a file that a killed attempt left, up to the whole file.

    `file`: the number of the file. `share`: the part that is left, in millionths of the file.
    """

    file: int
    share: int


@dataclass(frozen=True)
class World:
    """Records that are sent (partition and value; `marker` takes an offset without a record), and how they are read.

    `cuts`: how many offsets of each partition a batch reads, partition by partition; the rest is the last batch.
    """

    partitions: int
    sent: list[tuple[int, bytes | str | None]]
    cuts: list[tuple[int, ...]]
    leftovers: list[Leftover]
    sink: str
    compact_every: int
    root: str | None

    def topic(self) -> Topic:
        """Write the topic."""
        topic = Topic(partitions=self.partitions)
        for number, (drawn, value) in enumerate(self.sent):
            partition = drawn % self.partitions
            if value == "marker":
                topic.append_marker(partition)
            elif value == "visit":
                topic.append(partition, visit(f"v{number}", number))
            elif not isinstance(value, str):
                topic.append(partition, value)
        return topic

    def batches(self, topic: Topic) -> list[Batch]:
        """Divide the topic into batches; some are empty."""
        position = dict.fromkeys(topic.ends, 0)
        batches = []
        for cut in [*self.cuts, tuple(topic.ends.values())]:
            ranges = {}
            for (partition, end), count in zip(topic.ends.items(), cut, strict=False):
                begin = position[partition]
                position[partition] = min(end, begin + count)
                if position[partition] > begin:
                    ranges[partition] = (begin, position[partition])
            batches.append(Batch(ranges))
        return batches

    def write(self, home: Path, topic: Topic, committed: int | None = None) -> Query:
        """Write what the synchronizer leaves, and what its killed attempts left: files that its log does not name."""
        batches = self.batches(topic)
        if committed is not None:
            committed %= len(batches)
        query = write_output(
            home, topic, batches, sink=self.sink, committed=committed, compact_every=self.compact_every, root=self.root
        )
        files = list(query.files.values())
        for number, leftover in enumerate(self.leftovers if self.sink == FILES else []):
            content = files[leftover.file % len(files)].read_bytes()
            torn = content[: len(content) * leftover.share // 1_000_000]
            (query.output / part_name(800 + number, 0)).write_bytes(torn)
        return query


# Weights by repetition in one list: `one_of` counts a strategy that it has twice only once.
_VALUES = st.one_of(
    st.sampled_from(
        ["visit"] * 40 + ["marker"] * 4 + [*UNPARSABLE] + [b"\n", b"\r", b"a\r\n\nb", b"same", b"same", b"\x00"]
    ),
    st.binary(max_size=12),
)
_LEFTOVERS = st.builds(Leftover, st.integers(0, 20), st.integers(0, 1_000_000))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    sent = draw(
        st.sampled_from([1, 30, 10, 30, 30]).flatmap(
            lambda size: st.lists(st.tuples(st.integers(0, 3), _VALUES), min_size=size, max_size=2 * size)
        )
    )
    return World(
        partitions=draw(st.integers(1, 4)),
        sent=sent,
        cuts=draw(st.lists(st.tuples(*[st.sampled_from([0, 1, 3, 9])] * 4), max_size=12)),
        leftovers=draw(st.lists(_LEFTOVERS, max_size=4)),
        sink=draw(st.sampled_from([FILES, FILES, FILES, FOREACH_APPEND, FOREACH_OVERWRITE])),
        compact_every=draw(st.sampled_from([10, 1, 2, 3])),
        root=draw(st.sampled_from([None, "/home/stack/output/visits_json"])),
    )


def judge(query: Query, topic: Topic, *, caught_up: bool) -> Verdict | None:
    """Judge; None when it raises Unknown."""
    try:
        return judge_output(query, topic, caught_up=caught_up)
    except Unknown:
        return None


@examples(200)
@given(worlds())
def test_a_query_at_rest_holds(world: World) -> None:
    topic = world.topic()
    with tempfile.TemporaryDirectory() as home:
        verdict = judge_output(world.write(Path(home), topic), topic)
    anything = any(topic.records.values())
    assert verdict.outcome is (Outcome.HOLDS if anything else Outcome.UNKNOWN), says(verdict)


@examples(200)
@given(worlds(), st.integers(0, 12), st.booleans(), st.integers(0, 1_000_000))
def test_a_query_inside_a_batch_is_never_violated(world: World, committed: int, logged: bool, share: int) -> None:
    topic = world.topic()
    with tempfile.TemporaryDirectory() as home:
        query = world.write(Path(home), topic, committed)
        newest = max((batch for batch, _ in query.files), default=0)
        log = query.output / METADATA
        if world.sink == FILES and not logged and not (log / f"{newest}.compact").exists():
            # The batch is still writing: its files grow, and neither log nor commit name them.
            (log / str(newest)).unlink(missing_ok=True)
            for (batch, _), file in query.files.items():
                if batch == newest:
                    content = file.read_bytes()
                    file.write_bytes(content[: len(content) * share // 1_000_000])
        verdict = judge(query, topic, caught_up=False)
    assert verdict is None or verdict.outcome is not Outcome.VIOLATED, says(verdict)
