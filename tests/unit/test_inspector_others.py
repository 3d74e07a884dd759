"""Spark checkpoints as others have them: sources, files and folders that this project does not write. No JVM.

The outcomes are those of Spark 4.2.0 restarted on such checkpoints, or of the class that a case names.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faultline.formats.run import SPARK_RUN_FILE
from faultline.inspector.__main__ import main
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import list_folders
from faultline.inspector.model import Report
from faultline.inspector.recognize import engine_of
from faultline.inspector.render.prose import render
from faultline.inspector.spark.releases import TRIED
from faultline.inspector.spark.report import read_report
from tests.golden.archives import golden

RELEASE = golden("spark-4.2")


def query(folder: Path, *batches: tuple[str, ...], commits: int | None = None) -> Path:
    """Write the logs of a query: the lines of the sources of each batch, and all commits or the first ones."""
    checkpoint = folder / "checkpoint"
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "af4e34aa-c09d-5bf1-8311-881b59bb08f4"}))
    for number, lines in enumerate(batches):
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1_772_600_000_000 + number, "conf": {}})
        (checkpoint / "offsets" / str(number)).write_text("\n".join(["v1", head, *lines]), newline="")
    for number in range(len(batches) if commits is None else commits):
        (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return checkpoint


def delta(version: int, index: int, starting: bool = False, table: str = "x") -> str:
    return json.dumps(
        {"reservoirId": table, "reservoirVersion": version, "index": index, "isStartingVersion": starting}
    )


def outcome(checkpoint: Path, output: Path | None = None) -> tuple[str, int | None, str]:
    """Action, batch and words of the restart."""
    report = read_report(checkpoint, None, output)
    assert report.restart is not None
    return report.restart.action, report.restart.step, render(report)


def copy(tmp_path: Path, name: str, release: str = "spark-4.2") -> Path:
    return (
        Path(shutil.copytree(golden(release) / name, tmp_path / name, ignore=shutil.ignore_patterns("*.crc")))
        / "checkpoint"
    )


OFFSETS = {
    "nested": '{"shard-0":{"position":"4961","open":false},"metadata":{"batch":"2"}}',
    "an id and a list": '{"persistent://public/default/pump":[8,0,16,3]}',
    "a number": "1772600000000",
    "text": "2026-03-04 05:00:00.0",
    "text that begins like JSON": "[2026-03-04",
    "null": "null",
    "true": "true",
    "deep": "[" * 5000,
    "half of a surrogate pair": '{"a":"\\ud800"}',
}


@pytest.mark.parametrize("line", OFFSETS.values(), ids=OFFSETS.keys())
def test_a_source_that_is_not_known_is_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    checkpoint = query(tmp_path, (line,), (line,), (line,))
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 3)
    assert "goes on with batch 3, as far as can be seen from here" in words
    assert "not looked at: source 0, whose kind is not known here" in words
    assert main(["--no-lag", str(checkpoint)]) == 0
    assert capsys.readouterr().err == ""


def test_an_offset_like_kafkas_is_kafkas_only_where_kafka_kept_its_start(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ('{"hub":{"0":5}}',), ('{"hub":{"0":9}}',))
    assert "looks like Kafka's, the connector is not known" in outcome(checkpoint)[2]
    start = checkpoint / "sources" / "0" / "0"
    start.parent.mkdir(parents=True)
    start.write_bytes(b'\0v1\n{"hub":{"0":2}}')
    words = outcome(checkpoint)[2]
    assert "looks like" not in words
    assert "Kafka topic hub: partition 0 from 2 to 5" in words
    start.write_bytes(b'v1\n{"hub-id":"x"}')
    assert "sources/0/0, since it does not say where such a source began" in outcome(checkpoint)[2]


def test_lines_end_as_scala_ends_them(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("-\r", "-"), ("-\r", "-"))
    assert outcome(checkpoint)[:2] == ("continue", 2)


def test_fields_of_the_metadata_have_defaults(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("-",), ("-",))
    (checkpoint / "offsets" / "1").write_text("v1\n{}\n-")
    assert outcome(checkpoint)[:2] == ("continue", 2)


@pytest.mark.parametrize(
    ("before", "after", "fails"),
    [
        (("-",), ("-", "-"), True),
        (("-", "-"), ("-",), True),
        (('{"logOffset":-1}', "4"), ("27", '{"logOffset":4}'), False),
        (("9",), ('{"logOffset":0}',), True),
        (('{"a":{"0":1}}',), ('{"logOffset":0}',), True),
        ((delta(5, -1),), (delta(7, -1),), False),
        ((delta(5, -1),), (delta(0, -1, table="y"),), True),
        (('{"a":{"0":1}}',), (delta(7, -1),), True),
        (('{"logOffset":0}',), ('{"a":{"0":1}}',), False),
    ],
    ids=[
        "one more", "one less", "swapped", "a smaller number", "another kind",
        "delta", "another delta table", "delta after kafka", "kafka after files",
    ],
)  # fmt: skip
def test_the_two_newest_batches_must_fit_each_other(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], fails: bool
) -> None:
    checkpoint = query(tmp_path, before, after)
    log = checkpoint / "sources" / str(len(after) - 1)
    log.mkdir(parents=True)
    for number in range(5):
        (log / str(number)).write_text(f'v1\n{{"path":"file:///in/{number}","timestamp":1,"batchId":{number}}}')
    action, _, words = outcome(checkpoint)
    assert (action == "impossible") == fails, words


def test_another_kind_of_source_in_one_folder_is_shown_and_warned_of(tmp_path: Path) -> None:
    words = outcome(query(tmp_path, ("7",), ("9",), ('{"a":{"0":5}}',), commits=2))[2]
    assert "the number 9" in words
    assert "topic a" in words
    assert "two queries wrote here, or the query was changed" in words


def test_asynchronous_progress_that_was_killed_re_runs_its_newest_batch(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "async_progress")
    last = max(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("re-run", last)
    assert "PROBLEM" not in words


@pytest.mark.parametrize(("kept", "step"), [({0, 5}, 6), ({0, 2}, None)], ids=["four lack", "one lacks"])
def test_a_single_gap_is_of_asynchronous_progress_when_it_is_wide(
    tmp_path: Path, kept: set[int], step: int | None
) -> None:
    checkpoint = query(tmp_path, *[("-",)] * (max(kept) + 1))
    for number in set(range(max(kept))) - kept:
        (checkpoint / "offsets" / str(number)).unlink()
        (checkpoint / "commits" / str(number)).unlink()
    action, found, words = outcome(checkpoint)
    assert (action, found) == (("continue", step) if step else ("impossible", max(kept)))
    assert "asyncProgressTrackingEnabled" in words


def test_continuous_processing_writes_no_metadata(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, *[('{"a":{"0":1}}',)] * 3, commits=2)
    for offsets in (checkpoint / "offsets").iterdir():
        offsets.write_text('v1\n\n{"a":{"0":1}}')
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 2)
    assert "PROBLEM" not in words
    assert "offsets/1, as far as can be seen from here; only a query with a continuous trigger goes on" in words


def test_a_file_source_that_is_read_twice_has_one_log(tmp_path: Path) -> None:
    lines = [tuple(f'{{"logOffset":{number}}}' for _ in range(2)) for number in range(3)]
    checkpoint = query(tmp_path, *lines)
    log = checkpoint / "sources" / "0"
    log.mkdir(parents=True)
    for number in range(3):
        (log / str(number)).write_text(f'v1\n{{"path":"file:///in/{number}","timestamp":1,"batchId":{number}}}')
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 3)
    assert "PROBLEM" not in words
    assert "not looked at: which folder of sources/ is the log of source 0: it may be the same as another one" in words


@pytest.mark.parametrize("compares", [False, True], ids=["spark's default", "the synchronizer"])
@pytest.mark.parametrize("changed", ["offsets/12", "offsets/11", "commits/12", "metadata"])
def test_a_log_that_was_edited_fails_where_checksums_are_compared(tmp_path: Path, changed: str, compares: bool) -> None:
    checkpoint = Path(shutil.copytree(golden("spark-4.2") / "files_windowed", tmp_path / "copy")) / "checkpoint"
    whole = outcome(checkpoint)
    if compares:
        (checkpoint / SPARK_RUN_FILE).write_text("{}")
    file = checkpoint / changed
    file.write_bytes(file.read_bytes() + b" ")
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("impossible" if compares else "continue", whole[1])
    assert f"{file} was changed, and does not fit the checksum beside it" in words
    file.with_name(f".{file.name}.crc").write_bytes(b"no checksum")
    assert outcome(checkpoint) == whole


@pytest.mark.parametrize(
    ("compares", "checksum", "action"),
    [(False, True, "impossible"), (False, False, "re-run"), (True, True, "re-run")],
)
def test_a_commit_that_was_deleted_runs_again_unless_its_checksum_is_in_the_way(
    tmp_path: Path, compares: bool, checksum: bool, action: str
) -> None:
    checkpoint = Path(shutil.copytree(golden("spark-4.2") / "files_windowed", tmp_path / "copy")) / "checkpoint"
    if compares:
        (checkpoint / SPARK_RUN_FILE).write_text("{}")
    for name in ("12",) if checksum else ("12", ".12.crc"):
        (checkpoint / "commits" / name).unlink()
    said, step, words = outcome(checkpoint)
    assert (said, step) == (action, 12)
    assert ("commits/.12.crc is left of a file that was deleted" in words) == (action == "impossible")


def test_asynchronous_progress_writes_over_the_checksum_of_a_deleted_commit(tmp_path: Path) -> None:
    checkpoint = Path(shutil.copytree(golden("spark-3.5") / "async_progress", tmp_path / "copy")) / "checkpoint"
    last = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    (checkpoint / "commits" / str(last)).unlink()
    assert (checkpoint / "commits" / f".{last}.crc").exists()
    assert outcome(checkpoint)[:2] == ("re-run", last)
    (checkpoint / "commits" / str(last)).mkdir()
    action, _, words = outcome(checkpoint)
    assert action == "impossible"
    assert f"commits/{last} is a folder, where Spark has to write a file" in words


def test_a_snapshot_that_lies_among_its_files_makes_no_store_of_them(tmp_path: Path) -> None:
    checkpoint = Path(shutil.copytree(golden("spark-3.5") / "rocksdb", tmp_path / "copy")) / "checkpoint"
    state = checkpoint / "state" / "0" / "0"
    (state / "4.zip").rename(state / "SSTs" / "4.zip")
    assert outcome(checkpoint)[:2] == ("continue", 4)


@pytest.mark.parametrize(("release", "action"), [("4.0", "impossible"), ("4.2", "continue")])
def test_a_snapshot_fits_its_checksum_or_is_broken(tmp_path: Path, release: str, action: str) -> None:
    checkpoint = Path(shutil.copytree(golden(f"spark-{release}") / "rocksdb", tmp_path / "copy")) / "checkpoint"
    assert outcome(checkpoint)[0] == "continue"
    [newest] = checkpoint.glob("state/0/0/.4.zip.crc")
    newest.write_bytes(newest.read_bytes()[:8] + b"else")
    assert outcome(checkpoint)[0] == action
    newest.write_bytes(b"no checksum")
    assert outcome(checkpoint)[0] == "continue"


@pytest.mark.parametrize(
    ("offset", "start", "released"),
    [('{"a":{"0":5}}', b"", "impossible"), ("9", b"", "impossible"), ("9", b"v1\n1772600000000", "re-run")],
    ids=["kafka", "rate", "a whole one"],
)
def test_where_a_source_began_is_read_by_its_first_batch(
    tmp_path: Path, offset: str, start: bytes, released: str
) -> None:
    checkpoint = query(tmp_path, (offset,), commits=0)
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(start)
    assert outcome(checkpoint)[0] == released
    for name in ("offsets", "commits"):
        shutil.rmtree(checkpoint / name)
        (checkpoint / name).mkdir()
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 0)
    assert "batch 0, as far as can be seen from here: nothing was planned yet; not looked at: sources/0" in words


def test_a_source_that_looks_like_rate_micro_batch_is_named_and_not_looked_at(tmp_path: Path) -> None:
    offsets = ('{"offset":0,"timestamp":7}',), ('{"offset":10,"timestamp":1007}',)
    action, step, words = outcome(query(tmp_path, *offsets, commits=1))
    assert (action, step) == ("re-run", 1)
    assert "rate-micro-batch: from value 0 to 10, up to 1970-01-01T00:00:01.007Z; not looked at: source 0" in words


def test_a_query_that_keeps_state_has_no_asynchronous_progress(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    for number, folder in itertools.product(("10", "11"), ("offsets", "commits")):
        (checkpoint / folder / number).unlink()
    action, _, words = outcome(checkpoint)
    assert action == "impossible"
    assert "asynchronous progress tracking writes" not in words


def test_a_topic_that_did_not_exist_is_no_other_source(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ('{"a":{"0":4}}',), ("{}",), ('{"b":{"0":3}}',), commits=2)
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(b"\0v1\n{}")
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("re-run", 2)
    assert "two queries wrote here" not in words


def test_a_named_pipe_is_an_empty_file(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("-",), ("-",))
    for name in ("offsets/1", "metadata"):
        (checkpoint / name).unlink()
        os.mkfifo(checkpoint / name)
    assert outcome(checkpoint)[0] == "impossible"


def releases_that_go_on(checkpoint: Path) -> list[str]:
    report = read_report(checkpoint, None, None)
    assert report.restart is not None
    found = dict.fromkeys(TRIED, report.restart.action)
    found |= {release: each.action for each in report.restart.elsewhere for release in each.releases}
    return [release for release, action in found.items() if action == "continue"]


@pytest.mark.parametrize(("batches", "releases"), [(60, ["4.2", "4.3"]), (600, [])], ids=str)
def test_an_older_snapshot_and_the_changes_since_stand_in_for_one(
    tmp_path: Path, batches: int, releases: list[str]
) -> None:
    checkpoint = query(tmp_path, *[("-",)] * batches)
    store = checkpoint / "state" / "0" / "0"
    store.mkdir(parents=True)
    for version in range(1, batches + 1):
        (store / f"{version}.delta").write_bytes(b"x")
    (store / f"{batches}.snapshot").touch()
    assert releases_that_go_on(checkpoint) == releases


def test_an_older_snapshot_with_an_id_stands_in_too(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "state_ids")
    (file,) = (checkpoint / "state/0/0").glob("4_*.zip")
    file.write_bytes(file.read_bytes()[:500])
    assert releases_that_go_on(checkpoint) == ["4.2", "4.3"]


@pytest.mark.parametrize(("before", "after"), [("9", "5"), ('{"logOffset":0}', "5")], ids=["back", "another kind"])
def test_a_batch_that_runs_again_must_fit_the_one_before(tmp_path: Path, before: str, after: str) -> None:
    checkpoint = query(tmp_path, (before,), (after,), commits=1)
    start = checkpoint / "sources" / "0" / "0"
    start.parent.mkdir(parents=True)
    start.write_bytes(b"v1\n1772600000000")
    assert outcome(checkpoint)[:2] == ("impossible", 1)


@pytest.mark.parametrize(("committed", "expected"), [(3, ("continue", 3)), (2, ("impossible", 2))])
def test_an_offset_is_read_by_its_source_alone(tmp_path: Path, committed: int, expected: tuple[str, int]) -> None:
    checkpoint = query(tmp_path, ('{"a":{"0":1}}',), ('{"a":{"0":',), ('{"a":{"0":3}}',), commits=committed)
    start = checkpoint / "sources" / "0" / "0"
    start.parent.mkdir(parents=True)
    start.write_bytes(b'\0v1\n{"a":{"0":0}}')
    action, step, words = outcome(checkpoint)
    assert (action, step) == expected
    assert "offsets/1 cannot be read: the offset of source 0 is cut short" in words


@pytest.mark.parametrize(
    ("name", "action"), [("sources/0/11", "unknown"), ("sources/0/9.compact", "unknown"), ("sources/0/3", "continue")]
)
def test_a_log_of_a_source_in_a_version_that_is_not_known_is_no_damage(tmp_path: Path, name: str, action: str) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    edited(name, "v1", "v2")(checkpoint)
    assert outcome(checkpoint)[0] == action
    assert main(["--no-lag", str(checkpoint)]) == 0


def test_names_of_two_file_sources_do_not_say_which_is_which(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, *[(f'{{"logOffset":{number}}}',) * 2 for number in (0, 1)])
    for name in "ab":
        log = checkpoint / "sources" / name
        log.mkdir(parents=True)
        (log / "0").write_text('v1\n{"path":"file:///in/0","timestamp":1,"batchId":0}')
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 2)
    assert "not looked at: which of sources/a, sources/b is the log of source 0" in words


def test_where_a_rate_source_began_may_be_of_a_newer_version(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("5",), ("9",))
    start = checkpoint / "sources" / "0" / "0"
    start.parent.mkdir(parents=True)
    start.write_bytes(b"v2\n1772600000000")
    assert (
        "not looked at: source 0, whose kind is not known here, sources/0/0, since it is of version 2"
        in (outcome(checkpoint)[2])
    )
    assert main(["--no-lag", str(checkpoint)]) == 0


@pytest.mark.parametrize(("left", "fails"), [("state/0", True), ("offsets/.0.a.tmp", True), ("offsets/.7.crc", False)])
def test_the_first_batch_needs_empty_folders(tmp_path: Path, left: str, fails: bool) -> None:
    checkpoint = query(tmp_path)
    (checkpoint / left).mkdir(parents=True)
    report = read_report(checkpoint, None, None)
    assert report.restart is not None
    assert [(each.releases, each.action) for each in report.restart.elsewhere] == (
        [(["3.5", "4.0"], "continue")] if fails else []
    )
    assert report.restart.action == ("impossible" if fails else "continue")


@pytest.mark.parametrize(("kept", "committed", "taken"), [(9, 12, 9), (5, 6, 5)])
def test_commits_ahead_run_the_newest_planned_batch_again(
    tmp_path: Path, kept: int, committed: int, taken: int
) -> None:
    checkpoint = query(tmp_path, *[("-",)] * (kept + 1), commits=committed + 1)
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("impossible", kept)
    assert f"re-runs batch {kept}" in words
    assert f"commits/{taken} is there already" in words


def test_kafka_partitions_that_are_gone_fail_unless_loss_is_allowed(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ('{"a":{"0":1,"1":1},"b":{"0":1}}',), ('{"a":{"0":3}}',), commits=1)
    report = read_report(checkpoint, None, None)
    assert any("a partition 1, b partition 0" in each and "failOnDataLoss" in each for each in report.problems)
    assert main(["--no-lag", str(checkpoint)]) == 1


@pytest.mark.parametrize(
    ("index", "starting", "words"),
    [
        (-1, False, "from version 5"),
        (-100, False, "from version 5"),
        (17, False, "of version 5 the actions up to index 17"),
        (3, True, "within the table's first snapshot, version 5, up to its file 3"),
        (2**63 - 101, False, "from version 6"),
    ],
)
def test_a_delta_source_goes_on_inside_a_version(tmp_path: Path, index: int, starting: bool, words: str) -> None:
    assert words in outcome(query(tmp_path, (delta(5, index, starting),)))[2].splitlines()[-1]


def test_a_release_before_the_tried_ones_is_not_named_as_one_of_them(tmp_path: Path) -> None:
    report = read_report(query(tmp_path, ("-",)), None, None)
    assert report.releases == []
    assert any("older than 3.5" in note for note in report.notes)


State = Callable[[Path], object]


def found(checkpoint: Path, pattern: str) -> list[Path]:
    """The files of a pattern, which must be there."""
    files = sorted(checkpoint.glob(pattern))
    assert files, pattern
    return files


def unlink(pattern: str) -> State:
    def change(checkpoint: Path) -> None:
        for file in found(checkpoint, pattern):
            file.unlink()

    return change


def empty(pattern: str) -> State:
    return lambda checkpoint: [file.write_bytes(b"") for file in found(checkpoint, pattern)]


def cut(pattern: str, bytes_less: int) -> State:
    return lambda checkpoint: [file.write_bytes(file.read_bytes()[:-bytes_less]) for file in found(checkpoint, pattern)]


def nuls(pattern: str) -> State:
    return lambda checkpoint: [file.write_bytes(bytes(file.stat().st_size)) for file in found(checkpoint, pattern)]


def a_store_more(checkpoint: Path) -> None:
    """The metadata of the operator lists a store, as that of a join of streams has four."""
    edited("state/0/_metadata/metadata", '"storeName":"default"', '"storeName":"left-keyToNumValues"')(checkpoint)


def without_changes(change: State) -> State:
    """RocksDB that writes no change logs: since 4.2 they make good for a snapshot that cannot be read."""
    return lambda checkpoint: (unlink("state/0/*/*.changelog")(checkpoint), change(checkpoint))


def rocksdb_logs(checkpoint: Path) -> None:
    for partition in (checkpoint / "state" / "0").glob("[0-9]"):
        (partition / "logs").mkdir()
        (partition / "logs" / "000012-4a5b.log").write_bytes(b"x")


def markers(checkpoint: Path) -> None:
    for folder in ("state", "state/0", "state/0/0", "offsets", "commits", "sources"):
        (checkpoint / folder / "0_$folder$").touch()


def newest_entry_gone(checkpoint: Path) -> None:
    """Batch 12 took no file: without it, batch 11 is the newest, which took the file of entry 11."""
    for name in ("offsets/12", "commits/12", "sources/0/11"):
        (checkpoint / name).unlink()


def folders_called_like_batches(checkpoint: Path) -> None:
    for log in ("offsets", "commits", "sources/0"):
        (checkpoint / log / "99").mkdir()


def edited(pattern: str, before: str, after: str) -> State:
    """Replace words in the newest file of a log, or in a file of another name."""

    def change(checkpoint: Path) -> None:
        file = max(checkpoint.glob(pattern), key=lambda path: int(path.name) if path.name.isdecimal() else 0)
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    return change


def stray_folders_in_the_state(checkpoint: Path) -> None:
    for folder in ("state/7", "state/0/7"):
        (checkpoint / folder).mkdir()


def without_stores(checkpoint: Path) -> None:
    for partition in (checkpoint / "state" / "0").glob("[0-9]"):
        shutil.rmtree(partition)


def renamed(pattern: str, name: str) -> State:
    """Give the first of some files another name."""
    return lambda checkpoint: (file := min(checkpoint.glob(pattern))).rename(file.with_name(name))


def another_attempt(checkpoint: Path) -> None:
    """Version 4 is made of changes, and its snapshot is an empty one that no commit names."""
    unlink("state/0/0/4_*.zip")(checkpoint)
    (checkpoint / "state/0/0/4_00000000-0000-4000-8000-000000000000.zip").touch()


def changes_of_another_attempt(checkpoint: Path) -> None:
    unlink("state/0/0/4_*.zip")(checkpoint)
    renamed("state/0/0/3_*.changelog", "3_00000000-0000-4000-8000-000000000000.changelog")(checkpoint)


def a_folder_for_the_metadata(checkpoint: Path) -> None:
    (checkpoint / "metadata").unlink()
    (checkpoint / "metadata").mkdir()


CHANGES: dict[str, tuple[str, State, str]] = {
    "a snapshot without a version": (
        "files_windowed",
        lambda path: (path / "state/0/0/._13.snapshot").touch(),
        "._13.snapshot has no version in its name",
    ),
    "the same of RocksDB": (
        "rocksdb",
        lambda path: (path / "state/0/0/4 copy.zip").touch(),
        "4 copy.zip has no version",
    ),
    "a stray folder in a partition": ("rocksdb", lambda path: (path / "state/0/0/backup").mkdir(), ""),
    "a snapshot of another attempt": ("state_ids", another_attempt, ""),
    "changes of another attempt": ("state_ids", changes_of_another_attempt, "has no 3.changelog"),
    "ids of an older commit": ("state_ids", unlink("commits/[23]"), "the commit names the state"),
    "a repartition that is not finished": (
        "files_windowed",
        lambda path: (
            edited("offsets/[0-9]*", 'shuffle.partitions":"2', 'shuffle.partitions":"1')(path),
            unlink("commits/12")(path),
        ),
        "this repartition is not committed",
    ),
    "metadata of a processor": ("processor", cut("state/0/_metadata/v2/[0-9]*", 40), "is cut short or not JSON"),
    "metadata of another operator": ("rocksdb", empty("state/0/_metadata/metadata"), ""),
    "bytes that are no text": (
        "rocksdb",
        lambda path: (path / "offsets/3").write_bytes((path / "offsets/3").read_bytes() + b"\xff"),
        "it has bytes that are not UTF-8",
    ),
    "a query's metadata with a mark of its bytes' order": (
        "rocksdb",
        lambda path: (path / "metadata").write_text((path / "metadata").read_text(), encoding="utf-8-sig"),
        "metadata first of all",
    ),
    "a folder for the query's metadata": (
        "rocksdb",
        a_folder_for_the_metadata,
        "metadata first of all",
    ),
    "the sources of a batch without files": (
        "files_windowed",
        lambda path: shutil.rmtree(path / "sources"),
        "ends with entry -1, and the offsets are at 11",
    ),
    "a compact file by a plain name": (
        "files_windowed",
        lambda path: (path / "sources/0/19").touch(),
        "sources/0/19.compact doesn't exist",
    ),
    "folders that are called like batches": ("files_windowed", folders_called_like_batches, ""),
    "another way to write a number": ("files_windowed", lambda path: (path / "offsets/+99").touch(), "offsets/+99"),
    "the same in commits": ("files_windowed", lambda path: (path / "commits/099").touch(), "commits/099"),
    "the same of an older batch": ("files_windowed", lambda path: (path / "offsets/03").touch(), ""),
    "stores that are gone": ("files_windowed", without_stores, "state/0/0 has no 1.delta"),
    "an operator that is gone": ("state_ids", lambda path: shutil.rmtree(path / "state/0"), "which the commit names"),
    "the same in a source's log": ("files_windowed", lambda path: (path / "sources/0/+99").touch(), "sources/0/+99"),
    "stray folders in the state": ("files_windowed", stray_folders_in_the_state, ""),
    "an empty schema": ("files_windowed", empty("state/0/0/_metadata/schema"), "schema is empty"),
    "a schema of NULs": (
        "files_windowed",
        lambda path: (path / "state/0/0/_metadata/schema").write_bytes(bytes(60)),
        "schema begins with NULs",
    ),
    "a delta of NULs": (
        "files_windowed",
        lambda path: (path / "state/0/0/13.delta").write_bytes(bytes(60)),
        "13.delta begins with NULs",
    ),
    "files of another provider": (
        "files_windowed",
        edited("offsets/[0-9]*", "HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider"),
        "delta, snapshot files, which RocksDBStateStoreProvider does not read",
    ),
    "more partitions than there are": (
        "files_windowed",
        edited("offsets/[0-9]*", '"spark.sql.shuffle.partitions":"2"', '"spark.sql.shuffle.partitions":"3"'),
        "state/0/2 has no 1.delta",
    ),
    "an id that is no UUID": ("files_windowed", edited("metadata", "-", "_"), "metadata first of all"),
    "a watermark as text": (
        "files_windowed",
        edited("commits/[0-9]*", '"nextBatchWatermarkMs":', '"nextBatchWatermarkMs":"a","x":'),
        "not a table with nextBatchWatermarkMs",
    ),
    "a field more in an offset": (
        "files_windowed",
        edited("offsets/[0-9]*", '{"logOffset":', '{"x":1,"logOffset":'),
        "",
    ),
    "markers of a store": ("files_windowed", markers, ""),
    "a stray batch": ("files_windowed", lambda path: (path / "offsets" / "99999999999999999999").touch(), ""),
    "partitions without end": (
        "files_windowed",
        lambda path: (
            edited("offsets/[0-9]*", '"spark.sql.shuffle.partitions":"2"', '"spark.sql.shuffle.partitions":"x"')(path),
            edited("state/0/_metadata/metadata", '"numPartitions":2', '"numPartitions":999999999999')(path),
        ),
        "state/0/2 has no 1.delta",
    ),
    "entries of no batch": (
        "files_windowed",
        lambda path: (
            unlink("sources/0/[4-8]")(path),
            edited("sources/0/9.compact", '"batchId":', '"batchId":[1],"x":')(path),
            edited("offsets/11", '{"logOffset":11}', '{"logOffset":3}')(path),
        ),
        "of the log",
    ),
    "a partition that is gone": ("files_windowed", lambda path: shutil.rmtree(path / "state/0/1"), "state/0/1"),
    "an empty delta": ("files_windowed", empty("state/0/0/13.delta"), "13.delta"),
    "an empty snapshot": ("files_windowed", lambda path: (path / "state/0/0/13.snapshot").touch(), ""),
    "a log of RocksDB beside its files": ("rocksdb", rocksdb_logs, ""),
    "a file of RocksDB that is gone": ("rocksdb", without_changes(unlink("state/0/0/SSTs/*.sst")), ".sst is missing"),
    "a snapshot of RocksDB without its end": ("rocksdb", without_changes(cut("state/0/0/*.zip", 30)), ""),
    "half of a snapshot of RocksDB": (
        "rocksdb",
        without_changes(cut("state/0/0/*.zip", 2_000)),
        "not a whole snapshot",
    ),
    "a file of RocksDB of NULs": ("rocksdb", without_changes(nuls("state/0/0/SSTs/*.sst")), ".sst begins with NULs"),
    "a store that no partition has": ("files_windowed", a_store_more, "state/0/0/left-keyToNumValues has no 1.delta"),
    "an empty snapshot of RocksDB": ("rocksdb", without_changes(empty("state/0/0/*.zip")), ".zip is empty"),
    "state of another attempt": ("state_ids", unlink("state/0/0/4_*"), "the commit names the state"),
    "the source's newest entry": ("files_windowed", newest_entry_gone, "sources/0/11 doesn't exist"),
    "the source's compact file": ("files_windowed", unlink("sources/0/9.compact"), "sources/0/9.compact doesn't exist"),
}


@pytest.mark.parametrize(("name", "change", "why"), CHANGES.values(), ids=CHANGES.keys())
def test_what_a_start_reads_is_looked_at(tmp_path: Path, name: str, change: State, why: str) -> None:
    checkpoint = copy(tmp_path, name)
    whole = outcome(checkpoint)
    change(checkpoint)
    action, step, words = outcome(checkpoint)
    if why:
        assert action == "impossible", words
        assert why in words
        assert main(["--no-lag", str(checkpoint)]) == 1
    else:
        assert (action, step) == whole[:2], words


def test_a_provider_that_is_not_known_keeps_its_files_as_it_likes(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    for offsets in (checkpoint / "offsets").glob("[0-9]*"):
        text = offsets.read_text()
        offsets.write_text(text.replace("org.apache.spark.sql.execution.streaming.state.HDFSBacked", "org.example.Own"))
    without_stores(checkpoint)
    action, _, words = outcome(checkpoint)
    assert action == "continue"
    assert "not looked at: the state, which org.example.OwnStateStoreProvider keeps: it is not known here" in words


def test_a_part_in_capitals_is_not_read_and_named(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    (checkpoint / "commits").rename(checkpoint / "Commits")
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("re-run", 12)
    assert "Commits is not read: Spark calls it commits, in small letters" in words


def test_state_that_was_not_copied_is_named(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    shutil.rmtree(checkpoint / "state")
    words = outcome(checkpoint)[2]
    assert "not looked at: the state, if the query keeps any: state/ has none, and such a query fails" in words


def test_values_are_not_those_of_kafka_where_nothing_says_that_it_is(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ('{"pump":{"0":1}}',), ('{"pump":{"0":1,"closed":true}}',))
    action, step, words = outcome(checkpoint)
    assert (action, step) == ("continue", 2)
    assert "PROBLEM" not in words
    start = checkpoint / "sources" / "0" / "0"
    start.parent.mkdir(parents=True)
    start.write_bytes(b'\0v1\n{"pump":{"0":0}}')
    assert "the offset of source 0 has a field of the wrong kind" in outcome(checkpoint)[2]


@pytest.mark.parametrize("gone", ["9.compact", "10"])
def test_a_hole_in_the_sinks_log_stops_its_readers_and_not_the_query(tmp_path: Path, gone: str) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    output = checkpoint.parent / "output"
    (output / "_spark_metadata" / gone).unlink()
    report = read_report(checkpoint, None, output)
    assert report.restart is not None
    assert report.restart.action == "continue"
    assert any(f"_spark_metadata/{gone} doesn't exist: every reader of the output fails" in p for p in report.problems)


def test_a_log_without_a_compact_file_has_a_longer_interval(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    output = checkpoint.parent / "output"
    for log, entry in (
        (checkpoint / "sources" / "0", {"path": "file:///in/9", "timestamp": 1, "batchId": 9}),
        (output / "_spark_metadata", {"path": "file:///out/9", "action": "add"}),
    ):
        (log / "9.compact").unlink()
        (log / "9").write_text(f"v1\n{json.dumps(entry)}")
        for number in range(9):
            shutil.copyfile(log / "9", log / str(number))
    action, step, words = outcome(checkpoint, output)
    assert (action, step) == ("continue", 13)
    assert "not looked at: spark.sql.streaming.fileSource.log.compactInterval, which was more than 10" in words
    assert "PROBLEM" not in words


def test_the_sink_skips_what_its_log_has_already(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    for number in range(5, 13):
        unlink(f"*s/{number}")(checkpoint)
    report = read_report(checkpoint, None, checkpoint.parent / "output")
    assert any("goes up to batch 12, which this query has not planned yet" in each for each in report.problems)
    shutil.rmtree(checkpoint.parent / "output" / "_spark_metadata")
    report = read_report(checkpoint, None, checkpoint.parent / "output")
    assert any("has no _spark_metadata" in each for each in report.notes)


def near(tmp_path: Path) -> Path:
    checkpoint = copy(tmp_path, "files_windowed")
    (checkpoint / "state/0/0/left-keyToNumValues/SSTs").mkdir(parents=True)
    (tmp_path / "cased").mkdir()
    shutil.copytree(checkpoint / "offsets", tmp_path / "cased" / "Offsets")
    (tmp_path / "metadata-alone").mkdir()
    shutil.copyfile(checkpoint / "metadata", tmp_path / "metadata-alone" / "metadata")
    (tmp_path / "flink" / ("a" * 32) / "shared").mkdir(parents=True)
    (tmp_path / "capitals" / "CHK-7").mkdir(parents=True)
    for name in (
        "ha/completedCheckpoint0a1b",
        "local/localState/aid_1/jid_2/vtx_3_sti_0/chk_7/state",
        "dstl/job/dstl/changes",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name, content in (("renamed/mine", bytes.fromhex("4960672d00000006")), ("parquet/_metadata", b"PAR1")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("files_windowed", "files_windowed/checkpoint|name one of: checkpoint"),
        ("", "files_windowed/checkpoint"),
        ("files_windowed/checkpoint/offsets", "name this one: .*files_windowed/checkpoint$"),
        ("files_windowed/checkpoint/state/0/1", "name this one: .*files_windowed/checkpoint$"),
        ("files_windowed/checkpoint/metadata", "name this one: .*files_windowed/checkpoint$"),
        ("files_windowed/checkpoint/state/0/0/_metadata/schema", "name this one: .*files_windowed/checkpoint$"),
        ("files_windowed/checkpoint/state/0/0/left-keyToNumValues/SSTs", "this one: .*files_windowed/checkpoint$"),
        ("files_windowed/output/_spark_metadata/9.compact", "the log in the output of Spark's file sink"),
        ("files_windowed/output", "output of Spark's file sink"),
        ("files_windowed/output/_spark_metadata", "the log in the output of Spark's file sink"),
        ("files_windowed/no", "does not exist; name this one: .*files_windowed/checkpoint$"),
        ("cased", "small letters"),
        ("metadata-alone", "only the metadata of a Spark query"),
        ("flink", "without any chk-N"),
        ("capitals", "has CHK-7: Flink calls it _metadata or chk-N, in small letters"),
        ("ha", "is Flink's high-availability storage.*; name the folder of state.checkpoints.dir"),
        ("local", "copies that a TaskManager keeps"),
        ("local/localState/aid_1/jid_2/vtx_3_sti_0/chk_7", "copies that a TaskManager keeps"),
        ("dstl", "only a checkpoint puts together"),
        ("dstl/job/dstl", "only a checkpoint puts together"),
        ("renamed", "renamed/mine has the content of Flink's _metadata.*; rename it to _metadata"),
        ("parquet", "is output in Parquet"),
        ("parquet/_metadata", "is a file; name the folder"),
        ("renamed/mine", "renamed/mine has the content of Flink's _metadata"),
    ],
)
def test_a_folder_near_a_checkpoint_names_the_right_one(tmp_path: Path, folder: str, words: str) -> None:
    with pytest.raises(InspectorError, match=words):
        engine_of(near(tmp_path) / folder)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("savepoint-1/_Metadata", "it has _Metadata, and Flink finds _metadata alone: rename it"),
        ("chk-3/_metadata/file", "_metadata is a folder"),
        ("savepoint-archive/savepoint-1/_metadata", "_metadata is empty"),
        ("chk-3/chk-3/_metadata", "_metadata is empty"),
    ],
)
def test_a_folder_that_is_no_whole_checkpoint_says_why(tmp_path: Path, file: str, reason: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert engine_of(tmp_path) == "flink"
    assert [each.reason for each in list_folders(tmp_path)] == [reason]


def test_a_prediction_that_fails_is_never_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = query(tmp_path, *[("-",)] * 3)
    for number in (0, 1):
        (checkpoint / "offsets" / str(number)).unlink()
    assert main(["--no-lag", str(checkpoint)]) == 1
    assert "A restart fails" in capsys.readouterr().out
    report: Report = read_report(checkpoint, None, None)
    assert report.restart is not None
    assert "asyncProgressTrackingEnabled" in report.restart.details[0]


@pytest.mark.parametrize("kind", ["void", "null"])
def test_a_limit_keeps_its_count_in_one_partition(tmp_path: Path, kind: str) -> None:
    checkpoint = copy(tmp_path, "files_windowed")
    shutil.rmtree(checkpoint / "state" / "0" / "1")
    assert outcome(checkpoint)[0] == "impossible"
    schema = checkpoint / "state" / "0" / "0" / "_metadata" / "schema"
    key = f'{{"type":"struct","fields":[{{"name":"key","type":"{kind}","nullable":true,"metadata":{{}}}}]}}'
    schema.write_bytes(schema.read_bytes()[:10] + key.encode())
    assert outcome(checkpoint)[0] == "continue"


def test_offsets_of_version_2_may_pin_nothing(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("-",), ("-",))
    (checkpoint / "offsets" / "1").write_text('v2\n{"batchWatermarkMs":0}\n0:-')
    assert outcome(checkpoint)[:2] == ("continue", 2)


def test_one_compact_file_of_a_longer_interval_is_no_hole(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ('{"logOffset":60}',))
    log = checkpoint / "sources" / "0"
    log.mkdir(parents=True)
    entries = [json.dumps({"path": f"file:///in/{each}", "timestamp": 1, "batchId": each}) for each in range(61)]
    (log / "49.compact").write_text("\n".join(["v1", *entries[:50]]))
    for number in range(50, 61):
        (log / str(number)).write_text(f"v1\n{entries[number]}")
    action, _, words = outcome(checkpoint)
    assert action == "continue"
    assert "compactInterval, which was more than 10: the log of source 0 has 61 entries and 1 compact file" in words


def test_a_provider_that_the_log_does_not_pin_is_that_of_the_files(tmp_path: Path) -> None:
    checkpoint = copy(tmp_path, "rocksdb")
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        version, head, *sources = file.read_text().splitlines()
        metadata = json.loads(head)
        metadata["conf"].pop("spark.sql.streaming.stateStore.providerClass")
        file.write_text("\n".join([version, json.dumps(metadata), *sources]))
    action, _, words = outcome(checkpoint)
    assert action == "continue"
    assert "providerClass, which the log does not pin, so the session must set it" in words
