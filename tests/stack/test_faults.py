"""The fault matrix on a real stack: rows pass, and a failed promise is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from faults.rows import CONTROL_ROWS, ROWS, cluster
from tests.stack.running_stack import RunningStack
from tests.stack.turns import one_a_day

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    with RunningStack(tmp_path_factory.mktemp("faults"), "local") as running:
        running.script("up.sh")
        yield running


SHORT = ("taskmanager-kill", "broker-kill", "synchronizer-kill")
"""In CI one a day, and on Compose another one: tests/stack/test_compose.py."""
LONG = [name for name, row in ROWS.items() if name not in SHORT and row not in cluster.ROWS]
"""Those of a cluster are in tests/stack/test_cluster_proof.py, where one is up."""


@pytest.mark.parametrize("name", [*one_a_day(SHORT), *(pytest.param(name, marks=pytest.mark.full) for name in LONG)])
def test_a_row_passes(stack: RunningStack, name: str) -> None:
    done = stack.script("faults.sh", "run", name, "--reset", check=False)
    print(done.stderr)
    assert done.returncode == 0
    assert "1 of 1 rows passed" in done.stdout
    [folder] = (stack.home / "results").glob(f"*/{name}")
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "default-src 'none'" in (folder / "report.html").read_text(encoding="utf-8")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "passed"
    assert len(result["checks"]) >= 6
    timeline = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    assert {"events", "kafka", "flink", "spark", "seen", "checkpoints"} == set(timeline)
    assert any(sample.get("position") for sample in timeline["flink"])
    assert any("offsets" in each for sample in timeline["checkpoints"] for each in sample["checkpoints"])


@pytest.mark.full
@pytest.mark.parametrize("name", CONTROL_ROWS)
def test_a_broken_job_is_caught(stack: RunningStack, name: str) -> None:
    done = stack.script("faults.sh", "run", name, "--reset", check=False)
    print(done.stderr)
    assert done.returncode == 0
    assert "3 of 3 rows passed" in done.stdout
