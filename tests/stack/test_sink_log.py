"""The judge reads the file sink's log as Spark does: both read the same lines, whatever the log says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faultline.formats.run import SINKS
from faultline.verdict.spark.lines import Part, read_lines
from faultline.verdict.spark.output import list_output

pytestmark = pytest.mark.ci

Entry = dict[str, Any]
PART = "part-00000-11111111-1111-1111-1111-111111111111-c000.json"
LINES = [f'{{"n":{number}}}\n' for number in range(6)]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def same(entry: Entry) -> list[Entry]:
    return [entry]


FORMS: dict[str, tuple[str, Callable[[Entry], list[Entry]], int]] = {
    "as it was written": (PART, same, 6),
    "named twice": (PART, lambda entry: [entry, entry], 12),
    "of no bytes": (PART, lambda entry: [{**entry, "size": 0}], 0),
    "of half its size": (PART, lambda entry: [{**entry, "size": entry["size"] // 2}], 4),
    "of a byte more than a line": (PART, lambda entry: [{**entry, "size": len(LINES[0]) + 1}], 2),
    "of a byte less than a line": (PART, lambda entry: [{**entry, "size": len(LINES[0]) - 1}], 1),
    "of twice its size": (PART, lambda entry: [{**entry, "size": entry["size"] * 2}], 6),
    "a folder": (PART, lambda entry: [{**entry, "isDir": True}], 0),
    "in a subfolder": (f"sub/{PART}", same, 0),
    "in a folder of a partition": (f"day=1/{PART}", same, 6),
    "with a name that begins with _": (f"_{PART}", same, 0),
    "with a name that begins with a point": (f".{PART}", same, 0),
    "in another folder": (PART, lambda entry: [{**entry, "path": f"file:///nowhere/{PART}"}, *other(entry)], 0),
}


def other(entry: Entry) -> list[Entry]:
    """An empty file in the folder, so that it is no copy of another."""
    return [{**entry, "path": entry["path"].replace("part-00000", "part-00001"), "size": 0}]


@pytest.mark.parametrize("form", FORMS)
def test_spark_and_the_judge_read_the_same_lines(spark: SparkSession, tmp_path: Path, form: str) -> None:
    name, alter, expected = FORMS[form]
    folder = tmp_path / "visits_json"
    file = folder / name
    file.parent.mkdir(parents=True)
    file.write_text("".join(LINES))
    entry = {
        "path": file.as_uri(), "size": file.stat().st_size, "isDir": False, "modificationTime": 0,
        "blockReplication": 1, "blockSize": 33554432, "action": "add",
    }  # fmt: skip
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text("\n".join(["v1", *map(json.dumps, alter(entry))]))
    assert len(spark.read.text(str(folder)).collect()) == expected
    output = list_output(folder, SINKS[0], 0)
    read = [
        sum(each.unread is None or position < each.unread for position in lines.positions)
        for each in output.files
        if not each.leftover and each.size
        for lines in read_lines(Part(each.path, 0, each.size), torn=True)
    ]
    assert sum(read) == expected
