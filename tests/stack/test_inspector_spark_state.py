"""State as the inspector shows it equals what Spark's own readers say; reading it changes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract.settings import ROOT

pytestmark = pytest.mark.stack

GOLDEN = ROOT / "tests" / "golden"

OWN_READERS = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
metadata = [row.asDict() for row in spark.read.format("state-metadata").load(sys.argv[1]).collect()]
rows = spark.read.format("statestore").load(sys.argv[1]).selectExpr("to_json(key) AS key", "to_json(value) AS value")
print(json.dumps({"metadata": metadata, "rows": [row.asDict() for row in rows.collect()]}, default=str))
"""


def test_state_equals_sparks_own_readers(tmp_path: Path) -> None:
    checkpoint = shutil.copytree(GOLDEN / "spark-4.0" / "files_windowed" / "checkpoint", tmp_path / "query")

    def snapshot() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}

    before = snapshot()
    command = [sys.executable, "-m", "inspector", "--no-lag", "--json", "--state", "--rows", "1000", str(checkpoint)]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Spark starts" in shown.stderr
    [operator] = json.loads(shown.stdout)["operators"]
    [store] = operator["state"]
    assert snapshot() == before

    own = subprocess.run(
        [sys.executable, "-c", OWN_READERS, str(checkpoint)], capture_output=True, text=True, check=True
    )
    expected = json.loads(own.stdout.splitlines()[-1])
    [metadata] = expected["metadata"]
    assert operator["name"] == metadata["operatorName"]
    assert store["name"] == metadata["stateStoreName"]
    assert store["partitions"] == metadata["numPartitions"]
    assert store["keys"] == len(expected["rows"])
    names = sorted(json.loads(row["key"])["visit_id"] for row in expected["rows"])
    assert sorted(json.loads(row["key"])["visit_id"] for row in store["rows"]) == names
    counts = sorted(json.loads(row["value"])["count"] for row in expected["rows"])
    assert sorted(json.loads(row["value"])["count"] for row in store["rows"]) == counts
