"""Every wrong windowing job is found out, whatever the seed."""

from __future__ import annotations

import random

import pytest

from faultline.formats.verdict import Outcome
from tests.judge.flink_world import judge_outputs
from tests.judge.reading_orders import content, could_be_faultless
from tests.judge.windows_mutants import MUTANTS, Mutant
from tests.judge.windows_runs import Run, read_all, settled_source
from tests.tiers import SEED, examples

EXAMPLES = examples(20)
RECORDS = 120


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_job_is_violated(mutant: Mutant) -> None:
    counted, seed = 0, SEED
    while counted < EXAMPLES:
        chance = random.Random(seed)
        source = settled_source(chance, chance.choice(mutant.partitions), RECORDS)
        faultless = read_all(Run(source), random.Random(seed))
        outputs = mutant.outputs(source, seed)
        if content(outputs) != content(faultless):
            verdict = judge_outputs(source, outputs).verdict
            if verdict.outcome is Outcome.VIOLATED:
                counted += 1
            else:
                # A wrong clock may decide like the right one in another order of reading: then they do not differ.
                assert could_be_faultless(source, outputs), f"{mutant.name}: seed {seed}: {verdict.reason}"
        seed += 1
        assert seed < SEED + 50 * EXAMPLES, f"{mutant.name} seldom writes anything wrong"


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 32
