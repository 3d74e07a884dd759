"""Every wrong synchronizer is found out, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.formats.verdict import Outcome
from tests.judge.spark_world import Query, judge_output, random_world, write_output
from tests.judge.synchronizer_mutants import MUTANTS, Mutant
from tests.tiers import SEED, examples

EXAMPLES = examples(20)
RECORDS = 120


def content(query: Query) -> dict[str, bytes]:
    """Give all that a query left."""
    home = str(query.home).encode()
    files = (path for folder in (query.output, query.checkpoint) for path in folder.rglob("*") if path.is_file())
    return {str(file.relative_to(query.home)): file.read_bytes().replace(home, b"") for file in files}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_wrong_synchronizer_is_violated(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, seed = 0, SEED
    while counted < EXAMPLES:
        # Every other example is compared in parts, as a large topic is.
        monkeypatch.setattr("faultline.verdict.spark.judge._BUCKET_ROWS", 20 if seed % 2 else RECORDS * 10)
        topic, batches = random_world(seed, RECORDS)
        faultless = write_output(tmp_path / f"{seed}-faultless", topic, batches, sink=mutant.sink, compact_every=5)
        query = mutant.write(tmp_path / f"{seed}", topic, batches, seed)
        if content(query) != content(faultless) and not mutant.reads_the_same(topic, batches, seed):
            verdict = judge_output(query, topic)
            assert verdict.outcome is Outcome.VIOLATED, f"{mutant.name}: seed {seed}: {verdict.reason}"
            counted += 1
        seed += 1
        assert seed < SEED + 20 * EXAMPLES, f"{mutant.name} seldom writes anything wrong"


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 20
