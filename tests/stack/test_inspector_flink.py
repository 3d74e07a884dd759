"""The Flink half of the inspector on golden checkpoints, against what Flink's own readers said of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from faultline.inspector.__main__ import main
from faultline.inspector.model import Report, report_from
from faultline.settings import ROOT
from tests.called import call, process
from tests.golden.archives import SCRATCH, golden, releases, scratch
from tests.stack.flink_cluster import PYTHON, described

FOLDERS = sorted(path for release in releases("flink") for path in release.glob("*-once"))
IDS = [f"{path.parent.name}/{path.name}" for path in FOLDERS]
Inspect = Callable[..., subprocess.CompletedProcess[str]]
EXACTLY_ONCE, AT_LEAST_ONCE, ROCKSDB = (
    golden("flink-2.2") / name for name in ("exactly-once", "at-least-once", "rocksdb")
)
# An incremental checkpoint names files by absolute paths: it is read where it was recorded.
RECORDED = SCRATCH / "flink" / "rocksdb"
NULS = SCRATCH / "flink" / "of-nuls"
"""A copy whose shared files are NULs. Its metadata names them: the path is as long."""


def changed(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the content of a file, not its time."""
    status = file.stat()
    file.write_bytes(change(file.read_bytes()))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def metadata(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda newest: changed(newest / "_metadata", change)


def cut(size: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:size]


def state_file(checkpoint: Path) -> Path:
    return next(path for path in sorted(checkpoint.iterdir()) if path.name != "_metadata")


CUTS = (0, 5, 300, 1500)
CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda newest: None,
    "one in the making": lambda newest: (newest.parent / "chk-99").mkdir(),
    **{f"metadata cut to {size}": metadata(cut(size)) for size in CUTS},
    "metadata of another kind": metadata(lambda content: b"hello"),
    # Four bytes of magic number, four of version.
    "metadata of version 99": metadata(lambda content: content[:7] + bytes([99]) + content[8:]),
    "a state file is gone": lambda newest: state_file(newest).unlink(),
    "a state file is cut": lambda newest: changed(state_file(newest), cut(-1)),
}
"""Changes that are made to a copy of EXACTLY_ONCE, at its newest checkpoint."""


@dataclass(frozen=True)
class Read:
    """Reports by one JVM, the newest checkpoint of each changed copy, and all files before and after the reading."""

    reports: dict[Path, Report]
    newest: dict[str, Path]
    before: dict[Path, tuple[int, bytes]]
    after: dict[Path, tuple[int, bytes]]

    def of(self, *paths: Path) -> list[Report]:
        return [self.reports[path] for path in paths]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Describe all golden checkpoints and all changed copies by one JVM: it takes a second to start."""
    newest = {}
    for name, change in CHANGES.items():
        newest[name] = checkpoints(copied(tmp_path_factory.mktemp("copy")))[-1]
        change(newest[name])
    with scratch():
        shutil.copytree(ROCKSDB, RECORDED)
        shutil.copytree(ROCKSDB, NULS)
        for file in NULS.glob("*/shared/*"):
            changed(file, lambda content: bytes(len(content)))
        for file in NULS.glob("*/chk-*/_metadata"):
            changed(file, lambda content: content.replace(bytes(RECORDED), bytes(NULS)))
        newest["RocksDB of NULs"] = max(NULS.glob("*/chk-*"))
        found = [file.parent for folder in (*FOLDERS, RECORDED) for file in sorted(folder.rglob("_metadata"))]
        found += [AT_LEAST_ONCE, newest["nothing"].parents[1]]
        found += [path for checkpoint in newest.values() for path in (checkpoint, checkpoint.parent)]
        before = contents(found)
        reports = described(*found, rows=100)
        return Read(dict(zip(found, reports, strict=True)), newest, before, contents(found))


def contents(folders: list[Path]) -> dict[Path, tuple[int, bytes]]:
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def inspect(read: Read, monkeypatch: pytest.MonkeyPatch) -> Inspect:
    """The inspector's command line, with the reports that are read already."""
    monkeypatch.setattr("faultline.inspector.__main__.flink_reports", lambda paths, *options: iter(read.of(*paths)))

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return call(main, "--no-lag", *map(str, arguments))

    return run


def flink(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [str(PYTHON), "-m", "faultline.inspector.flink", *arguments]
    return process(command, {"STACK_HOME": str(home)}, seconds=900)


@pytest.mark.parametrize("folder", FOLDERS, ids=IDS)
def test_operators_equal_savepoint_metadata(folder: Path, read: Read) -> None:
    """Flink's SQL function savepoint_metadata said this of every checkpoint when it was recorded."""
    expected = json.loads((folder / "savepoint_metadata.json").read_text())
    assert expected
    for name, report in zip(expected, read.of(*(folder / name for name in expected)), strict=True):
        assert not report.problems
        found = [
            {
                "checkpoint-id": int(report.id),
                "operator-name": operator.name,
                "operator-uid": operator.uid,
                "operator-uid-hash": operator.id,
                "operator-parallelism": operator.parallelism,
                "operator-max-parallelism": operator.max_parallelism,
                "operator-total-size-in-bytes": operator.state_bytes,
            }
            for operator in report.operators
        ]
        wanted = [{column: row[column] for column in found[0]} for row in expected[name]]
        assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("folder", FOLDERS, ids=IDS)
def test_state_bytes_equal_the_rest_api(folder: Path, read: Read) -> None:
    """The REST API counts the state of all subtasks of a checkpoint, without the coordinators'."""
    rest: dict[str, Any] = json.loads((folder / "rest.json").read_text())["checkpoint"]
    metadata = json.loads((folder / "savepoint_metadata.json").read_text())
    name = Path(rest["external_path"]).name
    relative = next(path for path in metadata if Path(path).name == name)
    [report] = read.of(folder / relative)
    coordinators = sum(row["operator-coordinator-state-size-in-bytes"] for row in metadata[relative])
    assert int(report.id) == rest["id"]
    assert sum(operator.state_bytes or 0 for operator in report.operators) - coordinators == rest["state_size"]


@pytest.mark.parametrize("release", sorted({folder.parent.name for folder in FOLDERS}))
def test_open_windows_hold_what_was_read_and_not_yet_emitted(release: str, read: Read) -> None:
    """Recompute the open windows from the offsets alone, for every checkpoint and savepoint of the run."""
    paths = sorted(path.parent for path in (golden(release) / "exactly-once").glob("**/_metadata"))
    assert paths
    for report in read.of(*paths):
        aggregate = next(each for each in report.operators if any(store.windows for store in each.state))
        store = next(store for store in aggregate.state if store.windows)
        assert aggregate.watermark is not None
        assert report.restart is not None
        offsets = [each.start or 0 for each in report.restart.partitions]
        expected = expected_windows(offsets, aggregate.watermark, first=1000)
        assert {(row["key"], int(row["window_end"])): int(row["value"]) for row in store.rows} == expected
        assert sum(window.keys for window in store.windows) == store.keys == len(expected)


def test_state_of_rocksdb_is_read_from_checkpoints_and_savepoints(read: Read) -> None:
    """An incremental checkpoint has RocksDB's files, in `shared` too; a savepoint is in canonical format."""
    (savepoint,) = (path.name for path in ROCKSDB.glob("savepoint-*"))
    checkpoints = sorted(path.parent.relative_to(ROCKSDB) for path in ROCKSDB.glob("*/chk-*/_metadata"))
    assert checkpoints
    reports = read.of(*(RECORDED / path for path in checkpoints))
    # Of the whole state; savepoint_metadata counts what a checkpoint has written itself, without shared files.
    rest = json.loads((ROCKSDB / "rest.json").read_text())["checkpoint"]
    metadata = json.loads((ROCKSDB / "savepoint_metadata.json").read_text())
    newest = next(rows for path, rows in metadata.items() if Path(path).name == f"chk-{rest['id']}")
    coordinators = sum(row["operator-coordinator-state-size-in-bytes"] for row in newest)
    assert sum(each.state_bytes or 0 for each in reports[-1].operators) - coordinators == rest["state_size"]
    for report in reports:
        assert not report.problems
        assert any("which checkpoints share: a copy of it alone cannot be restored" in note for note in report.notes)
    for report in [*reports, *read.of(RECORDED / savepoint)]:
        (aggregate,) = [each for each in report.operators if any(store.windows for store in each.state)]
        (store,) = [store for store in aggregate.state if store.windows]
        assert report.restart is not None and aggregate.watermark is not None
        offsets = [each.start or 0 for each in report.restart.partitions]
        expected = expected_windows(offsets, aggregate.watermark, first=3000)
        assert expected
        assert {(row["key"], int(row["window_end"])): int(row["value"]) for row in store.rows} == expected


def test_files_that_rocksdb_does_not_open_fail_in_flink_too(read: Read) -> None:
    [report] = read.of(read.newest["RocksDB of NULs"])
    assert report.restart is not None
    assert report.restart.action == "impossible"
    assert ["Flink refuses its keyed state" in problem for problem in report.problems] == [True]


def expected_windows(offsets: list[int], watermark: int, first: int) -> dict[tuple[str, int], int]:
    """Visits per id and window that ends after the watermark, of the records below the offsets.

    record.py sends visits 0 to 99, then from `first` on: visit n at n * 500 ms, of id n % 5, to partition n % 2.
    """
    windows: dict[tuple[str, int], int] = {}
    for partition, offset in enumerate(offsets):
        sent = [number for number in [*range(100), *range(first, first + 9000)] if number % 2 == partition]
        for number in sent[:offset]:
            end = (1_767_225_600_000 + number * 500) // 10_000 * 10_000 + 10_000
            if end > watermark + 1:
                windows[(f"v{number % 5}", end)] = windows.get((f"v{number % 5}", end), 0) + 1
    return windows


def test_prepared_transactions_are_named(read: Read) -> None:
    [report] = read.of(next(EXACTLY_ONCE.glob("*/chk-*")))
    assert {transaction.transactional_id.rpartition("-")[0] for transaction in report.transactions} == {
        "golden-0",
        "golden-1",
    }
    assert {transaction.checkpoint for transaction in report.transactions} == {int(report.id)}
    assert report.configuration == {"sink": "exactly-once (transactions)"}


def test_a_sink_without_transactions_is_said_to_repeat(read: Read) -> None:
    [report] = read.of(AT_LEAST_ONCE)
    assert report.restart is not None
    assert "not transactional (at-least-once)" in report.restart.details[-1]
    assert "written a second time" in report.restart.details[-1]
    assert report.configuration == {"sink": "no transactions (at-least-once, if it is Kafka's)"}
    assert not report.transactions


def copied(home: Path) -> Path:
    """A stack's home with a copy of the exactly-once run; folders end with their modification times."""
    shutil.copytree(EXACTLY_ONCE, home / "checkpoints" / "flink")
    for number, metadata in enumerate(sorted((home / "checkpoints" / "flink").glob("*/chk-*/_metadata"))):
        os.utime(metadata, (2_000_000_000 + number, 2_000_000_000 + number))
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copied(tmp_path)


def checkpoints(home: Path) -> list[Path]:
    return sorted((home / "checkpoints" / "flink").glob("*/chk-*"))


def test_resolve_and_offsets(home: Path, read: Read) -> None:
    newest = checkpoints(home)[-1]
    assert flink("resolve", "latest", home=home).stdout.strip() == str(newest)
    assert flink("resolve", checkpoints(home)[0].name, home=home).stdout.strip() == str(checkpoints(home)[0])
    assert json.loads(flink("offsets", str(newest / "_metadata"), home=home).stdout) == offsets(read, newest)


def offsets(read: Read, copy: Path) -> dict[str, int | None]:
    """The offsets of a checkpoint, as the report of the one that it is a copy of has them."""
    [report] = read.of(EXACTLY_ONCE / copy.parent.name / copy.name)
    assert report.restart is not None
    return {str(each.partition): each.start for each in report.restart.partitions}


def test_what_cannot_be_restored_is_refused_with_what_can(home: Path) -> None:
    first, second, *_ = checkpoints(home)
    (second / "_metadata").unlink()
    (first.parent / "chk-99").mkdir()
    for which in (second.name, "chk-99", "chk-1000", str(second)):
        refused = flink("resolve", which, home=home)
        assert refused.returncode == 1
        offered = refused.stderr.partition("can be restored, newest last:\n")[2]
        assert f"{first.parent.name}/{first.name}" in offered
        assert f"{second.parent.name}/{second.name}" not in offered
        assert refused.stdout == ""


def test_latest_of_nothing_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    assert flink("resolve", "latest", home=tmp_path).returncode == 3


@pytest.mark.parametrize("size", CUTS)
def test_metadata_cut_short_is_one_sentence(size: int, read: Read, inspect: Inspect) -> None:
    checkpoint = read.newest[f"metadata cut to {size}"]
    done = inspect(checkpoint)
    assert done.returncode == 1
    assert str(checkpoint) in done.stdout
    assert "PROBLEM" in done.stdout


def test_a_state_file_gone_is_named_and_the_rest_is_shown(read: Read, inspect: Inspect) -> None:
    checkpoint = read.newest["a state file is gone"]
    gone = checkpoint / state_file(EXACTLY_ONCE / checkpoint.parent.name / checkpoint.name).name
    done = inspect(checkpoint)
    assert done.returncode == 1
    assert f"state file {gone}" in done.stdout
    assert "operator " in done.stdout
    refused = flink("offsets", str(checkpoint), home=checkpoint.parents[3])
    assert refused.returncode == 1
    assert gone.name in refused.stderr


def test_reading_changes_nothing(read: Read, inspect: Inspect) -> None:
    assert inspect(read.newest["nothing"].parents[1]).returncode == 0
    assert read.before
    assert read.after == read.before


@pytest.mark.parametrize("change", ["metadata cut to 1500", "a state file is cut"])
def test_a_damaged_newest_checkpoint_does_not_hide_the_one_before_it(change: str, read: Read, inspect: Inspect) -> None:
    newest = read.newest[change]
    *_, before, _ = sorted(newest.parent.glob("chk-*"))
    damaged = state_file(newest) if change == "a state file is cut" else newest / "_metadata"
    done = inspect("--json", newest.parent)
    assert done.returncode == 1
    report = report_from(json.loads(done.stdout))
    assert [str(damaged) in problem for problem in report.problems] == [True]
    states = {Path(step.path).name: step.state for step in report.steps}
    assert states[newest.name] == "damaged"
    assert states[before.name] == "complete"
    assert report.restart is not None
    assert report.restart.action == "restore"
    assert f"chk-{report.restart.step}" == before.name
    # The damaged checkpoint had completed, so what it prepared was committed.
    assert any("1 later checkpoint committed results" in detail for detail in report.restart.details)


# Flink's own look-up of the folder that a user names, as `flink run -s` does it.
LOOK_UP = """
import sys
from faultline.inspector.flink.jvm import flink_jvm, java_cause
from py4j.protocol import Py4JJavaError
with flink_jvm([]) as jvm:
    storage = jvm.org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess
    for path in sys.argv[1:]:
        try:
            print(storage.resolveCheckpointPointer(path).getMetadataHandle().getStateSize())
        except Py4JJavaError as error:
            print(java_cause(error))
"""


def test_flink_itself_takes_no_folder_without_metadata_for_a_checkpoint(home: Path) -> None:
    whole, *_, newest = checkpoints(home)
    (newest / "_metadata").unlink()
    done = process([str(PYTHON), "-c", LOOK_UP, str(whole), str(newest)], seconds=900)
    size, refused = done.stdout.splitlines()
    assert int(size) == (whole / "_metadata").stat().st_size
    words = "Cannot find meta data file '_metadata' in directory"
    assert words in refused
    assert words in (ROOT / "docs" / "reading_a_checkpoint.md").read_text(encoding="utf-8")


def test_a_checkpoint_in_the_making_is_no_problem(read: Read, inspect: Inspect) -> None:
    done = inspect(read.newest["one in the making"].parent)
    assert done.returncode == 0
    assert "chk-99, not complete: no _metadata" in done.stdout


def test_metadata_of_a_version_not_known_is_called_unknown_and_not_damaged(read: Read, inspect: Inspect) -> None:
    file = read.newest["metadata of version 99"] / "_metadata"
    done = inspect(file.parent)
    assert done.returncode == 0
    assert "PROBLEM" not in done.stdout
    [note] = [line for line in done.stdout.splitlines() if line.startswith("note: ")]
    assert f"{file} is of a version" in note
    assert "Unrecognized checkpoint version number: 99" in note
    assert f"{file.parent.name}, unknown: " in done.stdout
    assert done.stdout.splitlines()[-1] == f"What a restore from {file.parent.name} does is not known here."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("metadata of another kind", "it is damaged, or of a version not known here"),
        ("metadata cut to 0", "_metadata is empty"),
    ],
)
def test_metadata_of_another_kind_is_one_sentence(change: str, words: str, read: Read, inspect: Inspect) -> None:
    file = read.newest[change] / "_metadata"
    done = inspect(file.parent)
    assert done.returncode == 1
    [problem] = [line for line in done.stdout.splitlines() if line.startswith("PROBLEM: ")]
    assert words in problem
    assert str(file.parent) in problem
    assert done.stdout.splitlines()[-1].startswith(f"A restore from {file.parent.name} fails")
    assert not done.stderr


def test_steps_of_an_sql_plan_without_state_are_one_line(inspect: Inspect) -> None:
    checkpoint = next(EXACTLY_ONCE.glob("*/chk-*"))
    done = inspect(checkpoint)
    assert (
        "and 2 operators without state, of which a restore needs nothing: 1 Calc, 1 LocalWindowAggregate" in done.stdout
    )
    assert "operator Calc" not in done.stdout
    names = {operator["name"] for operator in json.loads(inspect("--json", checkpoint).stdout)["operators"]}
    assert "Calc[5]" in names


def test_following_says_each_checkpoint_once_as_it_completes(home: Path, tmp_path: Path) -> None:
    *_, newest = checkpoints(home)
    kept = shutil.move(newest / "_metadata", tmp_path / "kept")
    command = [sys.executable, "-m", "faultline.inspector", "--no-lag", "--follow", "--json", str(newest.parent)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            seen = [json.loads(process.stdout.readline())["steps"][0] for _ in checkpoints(home)]
            assert {step["name"]: step["state"] for step in seen}[newest.name] == "incomplete"
            shutil.move(kept, newest / "_metadata")
            [step] = json.loads(process.stdout.readline())["steps"]
        finally:
            os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == ""
    assert (step["name"], step["state"]) == (newest.name, "complete")
    assert step["sources"][0]["partitions"]
    assert process.returncode == 0


def test_following_the_retained_checkpoints_reads_each_and_keeps_words_on_it(
    home: Path, tmp_path: Path, read: Read, inspect: Inspect
) -> None:
    stop, words = tmp_path / "stop", tmp_path / "words"
    stop.touch()
    command = ["follow", "--until", str(stop), "--words", str(words)]
    assert flink(*command, home=home).stdout == ""
    stop.unlink()
    environ = os.environ | {"STACK_HOME": str(home)}
    command = [str(PYTHON), "-m", "faultline.inspector.flink", *command]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        try:
            [*_, last] = found = json.loads(process.stdout.readline())["checkpoints"]
            gone = checkpoints(home)[0]
            shutil.rmtree(gone)
            left = [each for each in found if each["path"] != str(gone)]
            assert json.loads(process.stdout.readline())["checkpoints"] == left != found
        finally:
            stop.touch()
    assert process.returncode == 0
    copy = Path(last["path"])
    assert last["offsets"] == offsets(read, copy)
    kept = {str(file.relative_to(words)): file.read_text(encoding="utf-8") for file in words.glob("**/*.txt")}
    names = [str(Path(each["job_id"]) / f"{each['name']}.txt") for each in found]
    assert sorted(names) == sorted(kept)
    recorded = EXACTLY_ONCE / copy.parent.name / copy.name
    restart = [line for line in inspect(recorded).stdout.splitlines() if line.startswith("Restored now")]
    assert len(restart) == 1
    assert restart[0] in kept[names[-1]].splitlines()


# Prints what the inspector says of each operator of a checkpoint that is deleted after its metadata was read.
DELETED = """
import shutil, sys
from pathlib import Path
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink import sink
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.flink.metadata import load_metadata, operators
from faultline.inspector.flink.offsets import READER_STATE, source_offsets
path = Path(sys.argv[1])
readers = {
    READER_STATE: source_offsets,
    sink.COMMITTER_STATE: sink.prepared,
    sink.WRITER_STATE: sink.transactional_writers,
}
with flink_jvm([path]) as jvm:
    entries = operators(load_metadata(jvm, path))
    shutil.rmtree(path)
    for entry in entries:
        for name in sorted(readers.keys() & entry.lists.keys()):
            try:
                readers[name](jvm, entry)
            except InspectorError as error:
                print(error)
"""


def test_a_checkpoint_that_is_deleted_while_it_is_read_is_said_so(tmp_path: Path) -> None:
    """A running job retains a few checkpoints only, so it may delete the one that somebody reads."""
    shutil.copytree(EXACTLY_ONCE, tmp_path / "copy")
    path = max(tmp_path.glob("copy/*/chk-*/_metadata")).parent
    done = process([str(PYTHON), "-c", DELETED, str(path)], seconds=900)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == len(("reader", "committer", "writer"))
    assert all("cannot be read (FileNotFoundException: " in line for line in said)


UNASKED = """
import sys
from faultline.inspector.flink import state
from faultline.inspector.flink.__main__ import main
state.UNASKED_BYTES = 100
sys.exit(main())
"""


def test_large_state_is_read_when_it_is_asked_for() -> None:
    checkpoint = max(EXACTLY_ONCE.glob("*/chk-*"))
    for flags, is_read in (((), False), (("--state",), True)):
        done = process([str(PYTHON), "-c", UNASKED, "describe", *flags, str(checkpoint)], seconds=900)
        assert done.returncode == 0, done.stderr
        report = report_from(json.loads(done.stdout))
        notes = [store.note for operator in report.operators for store in operator.state]
        assert any("--state reads them" in note for note in notes) != is_read
        assert report.restart is not None
        assert any("not looked at: the keyed state" in detail for detail in report.restart.details) != is_read


def test_a_reader_that_is_killed_is_one_sentence(home: Path) -> None:
    command = [sys.executable, "-m", "faultline.inspector", "--no-lag", "--follow", str(home / "checkpoints" / "flink")]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        (reader,) = psutil.Process(process.pid).children()
        reader.kill()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, len(said.splitlines()), "memory is used up" in said) == (1, 1, True)


def test_ctrl_c_ends_reading_in_silence(home: Path, tmp_path: Path) -> None:
    command = [
        str(PYTHON),
        "-m",
        "faultline.inspector.flink",
        "describe",
        "--follow",
        str(home / "checkpoints" / "flink"),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        # In the middle of the next report.
        shutil.move(checkpoints(home)[-1] / "_metadata", tmp_path / "kept")
        time.sleep(1.1)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr.read() == ""
    assert process.returncode == 130


def test_the_difference_between_two_checkpoints(read: Read, inspect: Inspect) -> None:
    first, *_, last = sorted(EXACTLY_ONCE.glob("*/chk-*"))
    done = inspect("--diff", first, last)
    assert done.returncode == 0
    assert "partition visits-0: " in done.stdout
    [old, new] = read.of(first, last)
    assert old.restart is not None
    assert new.restart is not None
    moved = [
        f"partition {a.topic}-{a.partition}: {a.start} -> {b.start} (+{(b.start or 0) - (a.start or 0)})"
        for a, b in zip(old.restart.partitions, new.restart.partitions, strict=True)
    ]
    assert [line.strip() for line in done.stdout.splitlines() if " partition visits-" in line] == moved
    as_json = json.loads(inspect("--diff", "--json", first, last).stdout)
    assert {"what": "id", "before": first.name[4:], "after": last.name[4:]} in as_json
    assert inspect("--diff", first, first).stdout.splitlines()[-1].strip() == "no figure differs"


def test_the_difference_between_two_engines_is_shown() -> None:
    paths = next(EXACTLY_ONCE.glob("*/chk-*")), golden("spark-4.0") / "kafka_killed" / "checkpoint"
    done = process([sys.executable, "-m", "faultline.inspector", "--no-lag", "--diff", *map(str, paths)])
    assert done.returncode == 0
    assert "engine: flink -> spark" in done.stdout
