"""Each release of Spark does what the inspector says of a restart with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from faultline.inspector.spark.releases import TRIED
from faultline.inspector.spark.report import read_report
from faultline.settings import ROOT
from tests.golden.archives import golden
from tests.stack.releases import made_python

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]

RECORDER = ROOT / "tests" / "golden" / "record_spark_formats.py"
WHOLE = ("rocksdb", "state_ids", "offsets_v2", "named_sources", "named_sink", "async_progress", "files_windowed")
NAMED = ("named_sources", "named_sink")
"""Their query has methods that Spark has from 4.2 on: an older release starts the query without names."""
DAMAGE = {
    "metadata": ("files_windowed", "metadata"),
    "last-commit": ("files_windowed", "commits/12"),
    "last-offsets": ("files_windowed", "offsets/12"),
    "before-last": ("files_windowed", "offsets/11"),
    "middle-commit": ("files_windowed", "commits/5"),
    "delta": ("files_windowed", "state/0/0/13.delta"),
    "old-delta": ("files_windowed", "state/0/1/1.delta"),
    "changelog": ("rocksdb", "state/0/0/3.changelog"),
    "snapshot": ("rocksdb", "state/0/0/4.zip"),
    "every-snapshot": ("rocksdb", "state/0/0/[24].zip"),
    "snapshot-and-changelog": ("rocksdb", "state/0/0/4.*"),
}
"""By name: the recipe, and what is deleted of the checkpoint."""


def delete(checkpoint: Path, pattern: str) -> None:
    """Delete files, and the checksums beside them."""
    for path in list(checkpoint.glob(pattern)):
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def lay_out(release: str, folder: Path) -> list[Path]:
    """Copy every golden checkpoint that the release is to start, and damaged ones of the release itself."""
    found = []
    for written in TRIED:
        for recipe in WHOLE:
            source = golden(f"spark-{written}") / recipe
            # An older release lacks the methods of the query; a file that it cannot read stops any query.
            name = "files_alone" if recipe in (*NAMED, "offsets_v2") and release < "4.2" else recipe
            two_sources = recipe == "named_sources" and written == "4.2" and name == "files_alone"
            if source.is_dir() and not two_sources:
                found.append(Path(shutil.copytree(source, folder / f"{written}-{recipe}" / name)))
    for case, (recipe, pattern) in DAMAGE.items():
        source = golden(f"spark-{release}") / recipe
        target = Path(shutil.copytree(source, folder / case / recipe))
        delete(target / "checkpoint", pattern)
        found.append(target)
    return found


@pytest.mark.parametrize("release", TRIED)
def test_a_release_does_what_the_inspector_says_of_it(release: str, tmp_path: Path) -> None:
    python = made_python(release)
    folders = lay_out(release, tmp_path)
    said = {folder: predicted(folder, release) for folder in folders}
    answer = tmp_path / "answer.json"
    done = subprocess.run(
        [str(python), str(RECORDER), "restart", str(answer), *map(str, folders)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GOLDEN_SPARK_JARS": "", "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    wrong = []
    for name, (error, committed) in json.loads(answer.read_text()).items():
        action, step = said[Path(name)]
        as_said = bool(error) if action == "impossible" else (not error and step in committed)
        if not as_said:
            wrong.append((name, action, step, error, committed))
    assert not wrong


def predicted(folder: Path, release: str) -> tuple[str, int | None]:
    """Return the restart that the report predicts with this release: its own, or one listed under other releases."""
    restart = read_report(folder / "checkpoint", None, None).restart
    assert restart is not None
    other = next((each for each in restart.elsewhere if release in each.releases), None)
    return (other.action, other.step) if other else (restart.action, restart.step)
