"""State of Flink as rows: golden checkpoints against what was sent, and a job whose classes the inspector lacks."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from faultline.inspector.__main__ import main
from faultline.inspector.errors import InspectorError
from faultline.settings import ROOT
from tests.called import process
from tests.golden.archives import SCRATCH, golden, releases, scratch
from tests.stack.flink_cluster import PYTHON
from tests.stack.test_inspector_flink import expected_windows

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]

Rows = list[dict[str, Any]]
KEYS = 20

# The rows of each checkpoint by one JVM, a line each.
READ_ALL = """
import json, sys
from pathlib import Path
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.flink.rows import rows
with flink_jvm([]) as jvm:
    for folder in map(Path, sys.argv[1:]):
        lines = "".join(rows(jvm, folder, None, None)).splitlines()
        print(json.dumps([json.loads(line) for line in lines]))
"""


def read_all(folders: list[Path]) -> dict[Path, Rows]:
    done = process([str(PYTHON), "-c", READ_ALL, *map(str, folders)], {"PYTHONPATH": str(ROOT)}, seconds=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(folders, map(json.loads, done.stdout.splitlines()), strict=True))


def of(rows: Rows, state: str) -> Rows:
    return [row for row in rows if row["state"] == state]


@pytest.fixture(scope="module")
def recorded() -> dict[Path, Rows]:
    """The rows of the exactly-once checkpoints of all releases, and of those of RocksDB where they were recorded."""
    folders = [file.parent for release in releases("flink") for file in release.glob("exactly-once/**/_metadata")]
    rocksdb = SCRATCH / "flink" / "rocksdb"
    with scratch():
        shutil.copytree(golden("flink-2.2") / "rocksdb", rocksdb)
        return read_all(sorted(folders) + sorted(file.parent for file in rocksdb.glob("**/_metadata")))


def test_windows_timers_offsets_and_transactions_are_those_of_the_recording(recorded: dict[Path, Rows]) -> None:
    assert len(recorded) > 15
    prepared = 0
    for folder, rows in recorded.items():
        positions = {row["key"]: row["value"] for row in of(rows, "SourceReaderState")}
        assert positions.keys() == {"visits-0", "visits-1"}
        watermark = min(row["value"] for row in of(rows, "watermark"))
        first = 3000 if "rocksdb" in folder.parts else 1000
        expected = expected_windows([positions["visits-0"], positions["visits-1"]], watermark, first)
        assert {(row["key"], row["window_end"]): row["value"] for row in of(rows, "window-aggs")} == expected
        timers = of(rows, "_timer_state/event_window-timers")
        # A window fires at its last millisecond.
        assert {(row["key"], row["window_end"]): row["value"] + 1 for row in timers} == {
            key: key[1] for key in expected
        }
        for row in of(rows, "streaming_committer_raw_states"):
            assert row["key"].startswith("golden-")
            # One that was prepared for a checkpoint before may still wait for its commit.
            number = folder.name.removeprefix("chk-")
            assert not number.isdigit() or 0 < row["value"]["checkpoint"] <= int(number)
            prepared += 1
    assert prepared


Say = Callable[..., str]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    def run(*words: str | Path) -> str:
        assert main(["--no-lag", *map(str, words)]) == 0
        return capsys.readouterr().out

    return run


def pair() -> tuple[Path, Path]:
    return tuple(sorted(golden("flink-2.2").glob("exactly-once/*/chk-*"))[::2])  # type: ignore[return-value]


def test_csv_has_all_rows_a_limit_of_each_state_and_one_operator(say: Say) -> None:
    _, newest = pair()
    rows = list(csv.DictReader(io.StringIO(say(newest, "--state", "--csv"))))
    windows = [row for row in rows if row["state"] == "window-aggs"]
    assert len(windows) == 5
    assert {(row["kind"], row["value"]) for row in windows} == {("value", "4")}
    limited = list(csv.DictReader(io.StringIO(say(newest, "--state", "--csv", "--limit", "2"))))
    counts = {state: sum(1 for row in limited if row["state"] == state) for state in {row["state"] for row in rows}}
    assert set(counts.values()) == {2}
    assert limited == [row for row in rows if row in limited]
    alone = say(newest, "--state", "--csv", "--operator", "GlobalWindowAggregate[4]")
    assert list(csv.DictReader(io.StringIO(alone))) == [
        row for row in rows if row["operator"] == "GlobalWindowAggregate[4]"
    ]


def test_a_report_has_rows_of_all_states(say: Say) -> None:
    _, newest = pair()
    report = json.loads(say(newest, "--state", "--json", "--limit", "3"))
    states = {state["name"]: state for operator in report["operators"] for state in operator["state"]}
    assert (states["window-aggs"]["keys"], len(states["window-aggs"]["rows"])) == (5, 3)
    assert len(states["_timer_state/event_window-timers"]["rows"]) == 3
    assert len(states["watermark"]["rows"]) == 2


def test_an_operator_that_is_not_there_is_one_line() -> None:
    _, newest = pair()
    with pytest.raises(InspectorError, match="has no operator nobody; those with state: "):
        main([str(newest), "--no-lag", "--state", "--operator", "nobody"])


def test_a_difference_names_the_keys(say: Say) -> None:
    older, newest = pair()
    changes = json.loads(say("--diff", older, newest, "--state", "--json"))
    moved = {each["key"]: each for each in changes if each["state"] == "SourceReaderState"}
    assert {(each["change"], each["before"], each["after"]) for each in moved.values()} == {("changed", 290, 490)}
    windows = [each for each in changes if each["state"] == "window-aggs"]
    # Not one window of the older checkpoint is still open.
    assert {each["change"] for each in windows} == {"added", "removed"}
    assert all((each["before"] is None) == (each["change"] == "added") for each in windows)
    words = say("--diff", older, newest, "--state", "--limit", "1")
    assert "SourceReaderState: 0 added, 0 removed, 2 changed, 0 the same" in words
    assert "changed, key visits-0: 290 -> 490" in words
    assert "and 1 change more" in words
    assert "changed" not in say("--diff", newest, newest, "--state", "--csv").partition("\n")[2]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """Savepoints and a checkpoint of a job with classes of its own, by backend, key groups and format, as rows."""
    paths: dict[str, Path] = {}
    for backend, groups in product(("hashmap", "rocksdb"), ("8", "1")):
        folder = tmp_path_factory.mktemp(backend)
        program = str(ROOT / "tests" / "stack" / "written_state.py")
        command = [str(PYTHON), program, str(folder), backend, str(KEYS), groups]
        done = process(command, {"PYTHONPATH": str(ROOT)}, seconds=900)
        assert done.returncode == 0, done.stderr[-2000:]
        for name, path in zip(("canonical", "native", "checkpoint"), done.stdout.splitlines(), strict=True):
            paths[f"{backend} {groups} {name}"] = Path(path)
    found = read_all(list(paths.values()))
    return {name: found[path] for name, path in paths.items()}


FORMATS = [
    f"{backend} {groups} {name}"
    for backend, groups, name in product(("hashmap", "rocksdb"), "81", ("canonical", "native", "checkpoint"))
]
NUMBERS = range(1, KEYS + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_every_kind_of_state_is_read_in_every_format(name: str, written: dict[str, Rows]) -> None:
    rows = [row for row in written[name] if row["operator"] == "orders"]
    assert {row["key"]: row["value"] for row in of(rows, "names")} == {f"k{n}": ["first", f"n{n}"] for n in NUMBERS}
    assert {(row["key"], row["entry"]): row["value"] for row in of(rows, "counts")} == {
        (f"k{n}", entry): times * n for n in NUMBERS for entry, times in (("once", 1), ("twice", 2))
    }
    timers = [row for row in rows if row["kind"] == "timers"]
    assert {row["key"]: row["value"] for row in timers} == {f"k{n}": 1000 * n for n in NUMBERS}


@pytest.mark.parametrize("name", FORMATS)
def test_a_pojo_whose_class_is_not_here_is_read_as_its_fields(name: str, written: dict[str, Rows]) -> None:
    rows = [row for row in written[name] if row["operator"] == "orders"]
    assert {row["key"]: row["value"] for row in of(rows, "order")} == {
        f"k{n}": {"name": f"order {n}", "number": n, "total": n / 2 if n % 2 else None} for n in NUMBERS
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_type_that_is_not_known_is_named_with_its_size(name: str, written: dict[str, Rows]) -> None:
    found = [row for row in written[name] if row["operator"] == "baskets"]
    rows = of(found, "basket")
    # A native savepoint of a heap has the states of a key group one after the other: those behind it are not found.
    behind = {row["state"] for row in found} - {"basket"}
    is_of_heap = name.startswith("hashmap") and not name.endswith("canonical")
    assert all(each.startswith("_timer_state/") for each in behind) and (not behind or is_of_heap)
    assert {row["value"]["unknown"] for row in rows} == {"faultline.written.Basket"}
    assert all(row["value"]["bytes"] > 0 for row in rows)
    if is_of_heap:
        # In this format a value has no length, so the next one cannot be found.
        assert sum(row["value"]["entries"] for row in rows) == KEYS
    else:
        assert {row["key"] for row in rows} == {f"k{n}" for n in NUMBERS}
