"""State as the inspector shows it equals what Spark's own readers say; reading it changes nothing."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.golden.archives import golden

pytestmark = [pytest.mark.full]

OWN_READERS = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.streams.active
metadata = [row.asDict() for row in spark.read.format("state-metadata").load(sys.argv[1]).collect()]
rows = spark.read.format("statestore").load(sys.argv[1]).selectExpr("to_json(key) AS key", "to_json(value) AS value")
print(json.dumps({"metadata": metadata, "rows": [row.asDict() for row in rows.collect()]}, default=str))
"""


OWN_READER_OF_VARIABLES = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.streams.active
def read(name, value):
    return spark.read.format("statestore").option(name, value).load(sys.argv[1])
print(json.dumps({
    "count": {row.key.visit_id: row.value.visits for row in read("stateVarName", "count").collect()},
    "minutes": sorted([row.key.visit_id, row.list_element.minute] for row in read("stateVarName", "minutes").collect()),
    "by_minute": read("stateVarName", "by_minute").count(),
    "timers": sorted(row.expiration_timestamp_ms for row in read("readRegisteredTimers", "true").collect()),
}))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def inspected(checkpoint: Path) -> subprocess.CompletedProcess[str]:
    """Run the inspector with all state as JSON."""
    flags = ["--no-lag", "--json", "--state", "--limit", "1000"]
    command = [sys.executable, "-m", "faultline.inspector", *flags, str(checkpoint)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def correct_paths(checkpoint: Path) -> None:
    """Let the operator metadata name the schema files here, not where the golden checkpoint was recorded."""
    [file] = (checkpoint / "state" / "0" / "_metadata" / "v2").glob("[0-9]*")
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r'"file:[^"]+/checkpoint/', f'"{checkpoint.as_uri()}/', text), encoding="utf-8")
    file.with_name(f".{file.name}.crc").unlink()


@pytest.mark.parametrize(
    "release", ["4.0", pytest.param("4.1", marks=pytest.mark.full), "4.2", pytest.param("4.3", marks=pytest.mark.full)]
)
def test_states_of_a_processor_equal_sparks_own_reader(release: str, tmp_path: Path) -> None:
    checkpoint = shutil.copytree(golden(f"spark-{release}") / "processor" / "checkpoint", tmp_path / "query")
    before = contents(checkpoint)
    shown = inspected(checkpoint)
    [operator] = json.loads(shown.stdout)["operators"]
    assert operator["name"] == "transformWithStateInPandasExec"
    states = {
        state["name"]: [(json.loads(row["key"]), json.loads(row["value"])) for row in state["rows"]]
        for state in operator["state"]
    }
    assert contents(checkpoint) == before
    assert {state["name"]: state["kind"] for state in operator["state"]} == {
        "count": "ValueState", "minutes": "ListState", "by_minute": "MapState", "$procTimers_keyToTimestamp": "timers",
    }  # fmt: skip
    correct_paths(checkpoint)
    own = subprocess.run(
        [sys.executable, "-c", OWN_READER_OF_VARIABLES, str(checkpoint)], capture_output=True, text=True, check=True
    )
    expected = json.loads(own.stdout.splitlines()[-1])
    assert {key["visit_id"]: value["visits"] for key, value in states["count"]} == expected["count"] != {}
    minutes = sorted([key["visit_id"], value["list_element"]["minute"]] for key, value in states["minutes"])
    assert minutes == expected["minutes"]
    assert len(states["by_minute"]) == expected["by_minute"]
    timers = sorted(value["expiration_timestamp_ms"] for _, value in states["$procTimers_keyToTimestamp"])
    assert timers == expected["timers"] != []


def test_state_equals_sparks_own_readers(tmp_path: Path) -> None:
    checkpoint = shutil.copytree(golden("spark-4.0") / "files_windowed" / "checkpoint", tmp_path / "query")
    before = contents(checkpoint)
    shown = inspected(checkpoint)
    # The JVM itself warns of a module that Spark's start script adds.
    said = [line for line in shown.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert said == ["reading state by Spark's own readers: Spark starts, this takes some seconds"]
    [operator] = json.loads(shown.stdout)["operators"]
    [store] = operator["state"]
    assert contents(checkpoint) == before

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


def test_rows_as_csv_and_their_difference(tmp_path: Path) -> None:
    checkpoint = golden("spark-4.0") / "files_windowed" / "checkpoint"
    [operator] = json.loads(inspected(checkpoint).stdout)["operators"]
    [store] = operator["state"]

    def said(*words: str) -> list[dict[str, str]]:
        command = [sys.executable, "-m", "faultline.inspector", "--no-lag", "--state", "--csv", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    rows = said(str(checkpoint), "--operator", "stateStoreSave")
    shown = sorted((row["key"], row["value"]) for row in store["rows"])
    assert sorted((row["key"], row["value"]) for row in rows) == shown
    assert len(rows) == store["keys"] > 2
    limited = said(str(checkpoint), "--limit", "2")
    assert len(limited) == 2 and all(row in rows for row in limited)

    # The state of the batch before the last one.
    older = shutil.copytree(checkpoint, tmp_path / "query")
    for log in ("offsets", "commits"):
        newest = max(int(path.name) for path in (older / log).iterdir() if path.name.isdigit())
        (older / log / str(newest)).unlink()
    changes = said("--diff", str(older), str(checkpoint))
    before = {(row["operator"], row["state"], row["key"]): row["value"] for row in said(str(older))}
    after = {(row["operator"], row["state"], row["key"]): row["value"] for row in rows}
    expected = {
        key: (before.get(key, ""), after.get(key, "")) for key in before | after if before.get(key) != after.get(key)
    }
    assert {(row["operator"], row["state"], row["key"]): (row["before"], row["after"]) for row in changes} == expected
    assert expected
