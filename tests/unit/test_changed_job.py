"""The patches of the documentation apply to the job as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.changed_job import apply, patches


@pytest.mark.parametrize("name", patches())
def test_a_patch_of_the_documentation_applies(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "flink_job", tmp_path / "flink_job", ignore=shutil.ignore_patterns("__pycache__"))
    assert apply(patches()[name], tmp_path) == ""
    changed = [
        file
        for file in (tmp_path / "flink_job").glob("*.py")
        if file.read_text() != (ROOT / "flink_job" / file.name).read_text()
    ]
    assert len(changed) == 2


def test_there_are_three_patches() -> None:
    assert list(patches()) == ["Another aggregate", "Another key", "Sliding windows"]
