"""Every wrong windowing job is found out, whatever the seed."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace

import pytest

from faultline.formats.verdict import Outcome
from faultline.formats.visit import SOURCE_PARTITION_HEADER
from faultline.verdict.records import Record
from tests.judge.flink_world import Outputs, judge_outputs
from tests.judge.windows_mutants import MUTANTS, Mutant
from tests.judge.windows_runs import Run, read_all, settled_source
from tests.tiers import SEED, examples

EXAMPLES = examples(20)
RECORDS = 120


def content(outputs: Outputs) -> object:
    """Give what the topics hold, except what is not promised: order between keys, the partition without a key."""
    ordered: dict[object, list[Record]] = defaultdict(list)
    for record in sorted(outputs.windows, key=lambda record: (record.partition, record.offset)):
        ordered[record.partition, record.key].append(record._replace(offset=0))
    free = []
    for name, records in (("late", outputs.late), ("rejected", outputs.rejected)):
        for record in sorted(records, key=lambda record: (record.partition, record.offset)):
            if record.key is None:
                free.append(name + repr(record._replace(partition=0, offset=0)))
            else:
                origin = dict(record.headers)[SOURCE_PARTITION_HEADER]
                ordered[name, origin, record.partition, record.key].append(record._replace(offset=0))
    return ordered, sorted(free)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_job_is_violated(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, seed = 0, SEED
    while counted < EXAMPLES:
        # Every other example is compared in parts, as a large topic is.
        monkeypatch.setattr("faultline.verdict.flink.windows.BUCKET_RECORDS", 20 if seed % 2 else RECORDS * 10)
        chance = random.Random(seed)
        source = settled_source(chance, chance.choice(mutant.partitions), RECORDS)
        faultless = read_all(Run(source), random.Random(seed))
        outputs = mutant.outputs(source, seed)
        if content(outputs) != content(faultless):
            verdict = judge_outputs(source, outputs).verdict
            assert verdict.outcome is Outcome.VIOLATED, f"{mutant.name}: seed {seed}: {verdict.reason}"
            counted += 1
        seed += 1
        assert seed < SEED + 50 * EXAMPLES, f"{mutant.name} seldom writes anything wrong"


def test_a_loss_is_found_while_the_job_is_behind() -> None:
    for seed in range(SEED, SEED + EXAMPLES):
        source = settled_source(random.Random(seed), 2, RECORDS)
        outputs = read_all(Run(source), random.Random(seed))
        positions = {partition: len(records) - 1 for partition, records in source.items()}
        assert judge_outputs(source, outputs, positions=positions, as_is=True).verdict.outcome is Outcome.HOLDS, seed
        first, *_ = sorted(outputs.windows, key=lambda record: record.timestamp)
        lacking = replace(outputs, windows=[record for record in outputs.windows if record is not first])
        verdict = judge_outputs(source, lacking, positions=positions, as_is=True).verdict
        assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 1), f"seed {seed}: {verdict.reason}"


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 32
