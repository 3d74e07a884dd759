"""Each release of Spark does what the inspector says of a restart with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faultline.inspector.spark.releases import TRIED
from tests.golden.archives import golden
from tests.stack.releases import copies, is_as_said, made_python, predicted, restarted

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]

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
    found = [place for written in TRIED for place in copies(written, release, folder).values()]
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
    wrong = []
    for folder, (error, committed) in restarted(python, folders).items():
        if not is_as_said(said[folder], error, committed):
            wrong.append((folder, said[folder], error, committed))
    assert not wrong
