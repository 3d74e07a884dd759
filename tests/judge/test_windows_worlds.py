"""Faultless windowing jobs are never called violated, whatever they read, in whatever order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.formats.verdict import Outcome, Verdict
from tests.judge.flink_world import judge_outputs
from tests.judge.windows_worlds import RULES, TOPIC_SETS, Reader, World, examples, says, worlds

pytestmark = pytest.mark.timeout(600)


def verdict_on(reader: Reader, **options: Any) -> Verdict:
    """Judge what a job has written so far."""
    options |= {"shared": reader.clocks, "fewest_shared": reader.fewest_clocks}
    return judge_outputs(reader.source, reader.run.outputs(), rules=RULES, **options).verdict


@examples(240)
@given(worlds(reached=(1,)), st.integers(0, 2))
def test_a_settled_world_holds(world: World, markers: int) -> None:
    reader = Reader(world)
    outputs = reader.run.outputs()
    verdict = verdict_on(reader, markers=markers)
    anything = outputs.windows or outputs.late or outputs.rejected
    assert verdict.outcome is (Outcome.HOLDS if anything else Outcome.UNKNOWN), says(verdict)


@examples(120)
@given(worlds(closing=(0, 1, 2)), st.booleans())
def test_a_world_that_is_not_settled_is_never_violated(world: World, as_is: bool) -> None:
    reader = Reader(world)
    verdict = verdict_on(reader, as_is=as_is)
    assert verdict.outcome is not Outcome.VIOLATED, says(verdict)


@examples(160)
@given(worlds(closing=(0, 1, 2)), st.integers(0, 60), st.booleans(), st.booleans())
def test_a_job_that_is_behind_is_never_violated(world: World, reads: int, as_is: bool, older: bool) -> None:
    reader = Reader(world, reads)
    # The offsets are read before the outputs: they may be those of the checkpoint before.
    checkpoint = reader.checkpoints[-2 if older and len(reader.checkpoints) > 1 else -1]
    positions = reader.offsets(checkpoint)
    verdict = verdict_on(reader, positions=positions, as_is=as_is)
    assert verdict.outcome is not Outcome.VIOLATED, says(verdict)


@examples(80)
@given(worlds(closing=(0, 1, 2)), st.integers(0, 60), st.booleans(), TOPIC_SETS, st.booleans())
def test_a_job_that_is_inside_a_commit_is_never_violated(
    world: World, reads: int, as_is: bool, topics: set[str], decided: bool
) -> None:
    reader = Reader(world, reads)
    reader.half_committed(topics)
    # The transactions of the checkpoint before are known to be over, or nothing is known.
    positions = reader.offsets(reader.checkpoints[-2]) if decided and len(reader.checkpoints) > 1 else {}
    verdict = verdict_on(reader, positions=positions, as_is=as_is, at_rest=False)
    assert verdict.outcome is not Outcome.VIOLATED, says(verdict)
