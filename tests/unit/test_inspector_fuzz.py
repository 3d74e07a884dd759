"""Golden Spark checkpoints, damaged by chance: the report ends as documented, whatever a file holds. No JVM."""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path

import pytest

from faultline.inspector.__main__ import main
from tests.called import call
from tests.damaged import damage
from tests.golden.archives import releases
from tests.tiers import SEED, seeds

QUERIES = [folder.parent for release in releases("spark") for folder in sorted(release.glob("*/checkpoint"))]
IDS = [f"{query.parent.name}/{query.name}" for query in QUERIES]
EACH = 4
"""Damaged copies of each golden query; a quarter of them in the tiers before `full`."""
MANY = 150
"""Damaged copies of each golden query that only `full` tries."""
LONGEST_SECONDS = 20.0


def tried(query: Path, tmp_path: Path, seed: int) -> None:
    """Damage a copy and open it: the exit code is documented, and there is something to read."""
    copy = tmp_path / str(seed)
    # Checksums are of Hadoop's file system, and no reader here looks at them.
    shutil.copytree(query, copy, ignore=shutil.ignore_patterns("*.crc"))
    done = damage(copy, random.Random(seed))
    try:
        begun = time.monotonic()
        path = copy / "checkpoint"
        said = call(main, "--no-lag", "--format", "prose", "--sink", str(copy / "output"), str(path))
        sys.stdout.write(said.stdout)
        sys.stderr.write(said.stderr)
        assert said.returncode in (0, 1), (seed, done)
        assert time.monotonic() - begun < LONGEST_SECONDS, (seed, done)
    except Exception as error:
        raise AssertionError(f"{query}, seed {seed}: {done}") from error
    finally:
        shutil.rmtree(copy)


@pytest.mark.parametrize("query", QUERIES, ids=IDS)
@pytest.mark.parametrize(
    "numbers", [seeds(EACH), pytest.param(range(SEED + EACH, SEED + EACH + MANY), marks=pytest.mark.full)],
    ids=["some", "many"],
)  # fmt: skip
def test_damage_ends_in_an_answer_and_no_traceback(
    query: Path, numbers: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in numbers:
        tried(query, tmp_path, seed)
        output = capsys.readouterr()
        assert output.out or output.err
        assert "Traceback" not in output.err
