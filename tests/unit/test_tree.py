"""The list of the project's files: the same with git and without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.tree import listed

KEPT = [
    ".env", ".gitignore", "README.md", "checkpoints/README.md", "docker/certs/README.md", "faultline/stack/a b.py",
    "tests/golden/x/checkpoints/deep/.offsets.crc", "tests/golden/x/output/part-0.json",
]  # fmt: skip
IGNORED = [
    ".artifacts/venv/bin/python", ".stack/id", "checkpoints/flink/chk-1/_metadata", "docker/certs/company.crt",
    "output/x", "faultline/stack/__pycache__/a.cpython-311.pyc", "faultline/stack/b.pyc", ".mypy_cache/3.11/x.json",
]  # fmt: skip


def test_an_unpacked_archive_has_the_files_that_git_would_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for name in (*KEPT, *IGNORED):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(ROOT / ".gitignore", tmp_path)
    assert listed(tmp_path) == sorted(KEPT)
