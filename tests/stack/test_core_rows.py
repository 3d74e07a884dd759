"""The rows of the fault matrix that the tier quick runs, on one stack: three kills, real duplicates, real losses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stack.running_stack import RunningStack
from tests.stack.test_faults import CORE

pytestmark = [pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the results, after all rows have passed."""
    with RunningStack(tmp_path_factory.mktemp("rows"), "local") as stack:
        yield stack.faults(*CORE, "--reset", rows=len(CORE))


def timeline_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "timeline.json").read_text(encoding="utf-8")))


def test_positions_of_the_job_were_sampled(results: Path) -> None:
    # Not in each row: on a busy machine a job that has just started reports no metrics for a while.
    samples = [sample for name in CORE for sample in timeline_of(results / name)["flink"]]
    assert any(sample.get("position") for sample in samples)


@pytest.mark.parametrize("name", CORE)
def test_a_row_passes_and_leaves_what_it_saw(results: Path, name: str) -> None:
    folder = results / name
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "default-src 'none'" in (folder / "report.html").read_text(encoding="utf-8")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "passed"
    assert len(result["checks"]) >= 6
    timeline = timeline_of(folder)
    assert {"events", "kafka", "flink", "spark", "seen", "checkpoints"} == set(timeline)
    assert timeline["flink"]
    assert any("offsets" in each for sample in timeline["checkpoints"] for each in sample["checkpoints"])
