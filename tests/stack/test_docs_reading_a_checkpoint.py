"""docs/reading_a_checkpoint.md shows what the inspector really prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.golden.archives import golden

DOCUMENT = ROOT / "docs" / "reading_a_checkpoint.md"
SAMPLE = re.compile(r"<!-- output of: inspect (.+?) -->\n```text\n(.*?)```", re.DOTALL)
SAMPLES = SAMPLE.findall(DOCUMENT.read_text(encoding="utf-8"))
UNPACK = re.compile(r"^    (for .+ tar -xf .+)$", re.MULTILINE)
AGE = re.compile(r"\d+ (s|min|h|d) old")


def test_there_are_samples_of_both_engines() -> None:
    assert any("spark" in arguments for arguments, _ in SAMPLES)
    assert any("flink" in arguments for arguments, _ in SAMPLES)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a clone, in which the page's own command has unpacked the checkpoints."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "checkpoints").mkdir()
    [command] = UNPACK.findall(DOCUMENT.read_text(encoding="utf-8"))
    subprocess.run(["bash", "-ec", command], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("arguments", "expected"), SAMPLES, ids=[Path(a.split()[0]).name for a, _ in SAMPLES])
def test_samples_are_what_is_printed(arguments: str, expected: str, clone: Path) -> None:
    command = [sys.executable, "-m", "faultline.inspector", "--no-lag", *shlex.split(arguments)]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    assert AGE.sub("AGE old", done.stdout) == AGE.sub("AGE old", expected)


@pytest.mark.parametrize("path", ["state/0/0/1.delta"])
def test_state_files_are_not_delta_lake(path: str) -> None:
    checkpoint = golden("spark-4.0") / "files_windowed" / "checkpoint"
    assert (checkpoint / path).read_bytes()[:4] == b"LZ4B"
    assert not [found for found in checkpoint.rglob("*") if found.name == "_delta_log" or found.suffix == ".parquet"]
