"""docs/reading_a_checkpoint.md shows what the inspector really prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from contract.settings import ROOT

DOCUMENT = ROOT / "docs" / "reading_a_checkpoint.md"
SAMPLE = re.compile(r"<!-- output of: inspect (.+?) -->\n```text\n(.*?)```", re.DOTALL)
SAMPLES = SAMPLE.findall(DOCUMENT.read_text(encoding="utf-8"))
# A clone gives files its own time: ages differ, and which checkpoint of a run is called later.
AGE = re.compile(r"\d+ (s|min|h|d) old")
RESTART = re.compile(r"^(\d+ later checkpoints? committed|What its sink wrote).*", re.MULTILINE)


def settled(text: str) -> str:
    return RESTART.sub("", AGE.sub("AGE old", text))


def test_there_are_samples_of_both_engines() -> None:
    assert any("spark" in arguments for arguments, _ in SAMPLES)
    assert any("flink" in arguments for arguments, _ in SAMPLES)


@pytest.mark.parametrize(("arguments", "expected"), SAMPLES, ids=[Path(a.split()[0]).name for a, _ in SAMPLES])
def test_samples_are_what_is_printed(arguments: str, expected: str) -> None:
    command = [sys.executable, "-m", "inspector", "--no-lag", *shlex.split(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    assert settled(done.stdout) == settled(expected)


@pytest.mark.parametrize("path", ["state/0/0/1.delta"])
def test_state_files_are_not_delta_lake(path: str) -> None:
    checkpoint = ROOT / "tests" / "golden" / "spark-4.0" / "files_windowed" / "checkpoint"
    assert (checkpoint / path).read_bytes()[:4] == b"LZ4B"
    assert not [found for found in checkpoint.rglob("*") if found.name == "_delta_log" or found.suffix == ".parquet"]
