"""Each release of Spark starts copies that were damaged by chance, and does what the inspector says of them."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from faultline.inspector.model import Restart
from faultline.inspector.spark.releases import TRIED
from faultline.inspector.spark.report import read_report
from tests.damaged import damage
from tests.golden.archives import golden
from tests.stack.releases import WHOLE, made_python, of_release, restarted

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(2400)]

SEEDS = range(5000, 5200)
"""One for each damaged copy; what others find becomes a case of its own."""
BATCH_SECONDS = 15.0
"""Time for the first batch; a query that finds nothing to read makes none."""


class Said(NamedTuple):
    """A prediction: its action and batch; `limited`: it leaves something open that matters here."""

    action: str
    step: int | None
    limited: bool


def said_of(restart: Restart | None, release: str, touched: set[str]) -> Said:
    """Return what is predicted of a restart with a release. `touched`: damaged parts of the checkpoint."""
    if restart is None:
        return Said("unknown", None, limited=True)
    details = " ".join(restart.details)
    # Contents are not looked at in these two.
    unseen = "not looked at" in details and touched & {"state", "sources"}
    chosen = of_release(restart, release)
    return Said(chosen.action, chosen.step, bool(unseen) or "only a query with" in details)


def damaged_parts(whole: Path, copy: Path) -> set[str]:
    """Name the parts of a checkpoint in which a file differs from that of the whole one."""
    before, after = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (whole, copy)
    )
    return {path.parts[0] for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def is_wrong(said: Said, error: str, committed: list[int]) -> bool:
    """Return whether the engine contradicts; one that goes on and finds nothing to read commits nothing."""
    if said.action == "unknown" or (said.limited and error):
        return False
    if said.action == "impossible":
        return not error and not said.limited
    return bool(error) or bool(committed and said.step not in committed)


def in_order(folder: Path) -> int:
    """Keep the order of the recording: Spark 4.0 takes the format of its state from the first query of a process."""
    return WHOLE.index(folder.name)


@pytest.mark.parametrize("release", TRIED)
def test_spark_carries_out_what_was_damaged_by_chance(release: str, tmp_path: Path) -> None:
    recipes = [name for name in WHOLE if (golden(f"spark-{release}") / name).is_dir()]
    python = made_python(release)
    cases: dict[Path, tuple[Said, list[str]]] = {}
    for seed in SEEDS:
        chance = random.Random(seed)
        recipe = chance.choice(recipes)
        # People copy the checksums beside the files, or do not. Without its log the sink runs every batch.
        left = shutil.ignore_patterns("output", *(["*.crc"] if chance.random() < 0.5 else []))
        folder = shutil.copytree(golden(f"spark-{release}") / recipe, tmp_path / str(seed) / recipe, ignore=left)
        whole = shutil.copytree(folder / "checkpoint", tmp_path / str(seed) / "whole")
        done = damage(folder / "checkpoint", chance)
        restart = read_report(folder / "checkpoint", None, None).restart
        cases[folder] = said_of(restart, release, damaged_parts(whole, folder / "checkpoint")), done
    wrong, outcomes = [], Counter[str]()
    for folder, (error, committed) in restarted(python, sorted(cases, key=in_order), BATCH_SECONDS).items():
        said, done = cases[folder]
        ended = "failed" if error else "ran" if committed else "idle"
        outcomes[f"{said.action}{', limited' if said.limited else ''}: {ended}"] += 1
        line = f"{folder.relative_to(tmp_path)} {done}: {said}; Spark: {error or committed}"
        print(line)
        if is_wrong(said, error, committed):
            wrong.append(line)
    print(json.dumps(outcomes))
    assert not wrong, "\n".join(wrong)
