"""Flink checkpoints of other connectors, backends and file systems than this project's. One JVM for all."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from faultline.inspector.model import Report
from faultline.inspector.render.prose import render
from faultline.settings import ROOT
from tests import flink_metadata as fm
from tests.called import process
from tests.damaged import damage
from tests.golden.archives import SCRATCH, golden, releases, scratch
from tests.stack.flink_cluster import PYTHON, described
from tests.tiers import seeds

OTHERS = golden("flink-others")
KEYED = "GroupAggregate[3]"


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """Every checkpoint of the archive, described by one process."""
    names = sorted(folder.name for folder in OTHERS.iterdir())
    return dict(zip(names, described(*(OTHERS / name for name in names)), strict=True))


def operator(report: Report, label: str) -> Any:
    return next(each for each in report.operators if each.label == label)


def test_a_source_of_another_connector_is_unknown_and_no_damage(reports: dict[str, Report]) -> None:
    report = reports["file-source"]
    assert not report.problems
    assert report.restart is not None
    assert report.restart.action == "restore"
    assert report.steps[-1].sources[0].kind == "unknown"
    words = render(report)
    assert "unknown source" in words
    assert "as far as can be seen from here" in words
    assert "Kafka topic" not in words
    assert "max-part-counter" in words


def test_splits_inside_those_of_another_source_are_not_read(reports: dict[str, Report]) -> None:
    report = reports["hybrid-source"]
    assert not report.problems
    (source,) = report.steps[-1].sources
    assert (source.kind, source.partitions) == ("unknown", [])
    assert report.restart is not None
    assert (report.restart.action, report.restart.partitions) == ("restore", [])
    words = render(report)
    assert "2 splits with its readers, 105 bytes with its coordinator" in words
    assert "not looked at: the position of source hybrid" in words


def test_a_list_of_another_size_fails_only_where_flink_cannot_open_it(tmp_path: Path) -> None:
    newest = max((golden("flink-2.2") / "at-least-once").glob("*/chk-*"))
    by_size = {file.stat().st_size: file.name for file in newest.iterdir()}
    cut, swapped = (Path(shutil.copytree(newest, tmp_path / name / newest.name)) for name in ("cut", "swapped"))
    file = by_size[319]
    (cut / file).write_bytes((cut / file).read_bytes()[:234])
    shutil.copyfile(newest / by_size[234], swapped / file)
    of_cut, of_swapped = described(cut, swapped)
    assert of_cut.restart is not None and of_swapped.restart is not None
    assert (of_cut.restart.action, of_swapped.restart.action) == ("impossible", "restore")
    assert "is cut short: 234 of 319 bytes; Flink opens it all the same" in " ".join(of_swapped.notes)
    assert "not looked at: which file belongs to" in render(of_swapped)


def test_committables_of_another_sink_are_no_transactions(reports: dict[str, Report]) -> None:
    report = reports["file-sink"]
    assert not report.problems
    assert not report.transactions
    assert "sink" not in report.configuration
    assert "unknown sink" in operator(report, "files").words
    assert "not looked at: what the sink" in render(report)


def test_the_changelog_backend_is_named_with_its_claim_mode(reports: dict[str, Report]) -> None:
    assert any("changelog state backend" in note and "CLAIM" in note for note in reports["changelog"].notes)


def test_changes_are_named_and_not_read() -> None:
    """The golden checkpoint at the place that its metadata names: a path as long as the recorded one."""
    recorded, place = "/data/streams/flink/changelog", SCRATCH / "changed"
    assert len(recorded) == len(str(place))
    with scratch():
        shutil.copytree(OTHERS / "changelog", place)
        for file in place.glob("cp/*/chk-*/_metadata"):
            file.write_bytes(file.read_bytes().replace(recorded.encode(), str(place).encode()))
        (report,) = described(place)
        assert not report.problems
        (state,) = operator(report, KEYED).state
        assert state.keys is None
        assert "keeps it as changes, which Flink applies in a running task alone; take a savepoint" in state.note
        assert f"not looked at: the keyed state of {KEYED}" in render(report)


def test_a_copy_says_where_its_files_are_recorded_and_where_they_are(reports: dict[str, Report]) -> None:
    report = reports["changelog"]
    job, was = "f444d6a29f01d2d757622449b00254e5", "/data/streams/flink/changelog"
    here = OTHERS / "changelog"
    (problem,) = report.problems
    assert "is a copy: its metadata names 15 state files by paths at which nothing is" in problem
    assert f"12 of {was}/cp/{job}/taskowned in {here}/cp/{job}/taskowned" in problem
    assert f"3 of {was}/dstl/{job}/dstl in {here}/dstl/{job}/dstl" in problem
    assert report.restart is not None
    assert report.restart.action == "impossible"
    assert [step.state for step in report.steps] == ["copied"]
    words = render(report)
    assert "fails here: Flink opens its files at their recorded paths alone" in words
    assert f"once the copy's files are in {was}/cp/{job}/taskowned, {was}/dstl/{job}/dstl" in words
    assert "which checkpoints share" not in words


def test_a_copy_that_lacks_a_file_cannot_be_put_back(tmp_path: Path) -> None:
    whole = Path(shutil.copytree(OTHERS / "changelog", tmp_path / "whole"))
    lacking = Path(shutil.copytree(whole, tmp_path / "lacking"))
    gone, *_, cut = sorted(lacking.glob("dstl/*/dstl/*"))
    gone.unlink()
    cut.write_bytes(b"")
    there, lacks = described(whole, lacking)
    assert len(there.problems) == 1
    assert "names 15 state files by paths" in there.problems[0]
    missing = [problem for problem in lacks.problems if "is missing" in problem]
    assert {gone.name, cut.name} == {problem.rpartition(" of operator")[0].rpartition("/")[2] for problem in missing}
    assert "names 13 state files by paths" in lacks.problems[-1]
    assert "A restore from chk-11 fails: see the problems" in render(lacks)
    assert [step.state for step in lacks.steps] == ["damaged"]


def test_a_native_savepoint_is_no_checkpoint(reports: dict[str, Report]) -> None:
    report = reports["native-savepoint"]
    assert not report.problems
    assert any("native savepoint" in note for note in report.notes)
    state, *timers = operator(report, KEYED).state
    assert {(each.kind, each.keys) for each in timers} <= {("timers", 0)}
    assert (state.name, state.kind, state.keys, state.note) == ("accState", "value", 16, "")
    assert {row["key"] for row in state.rows} < set("0123456789abcdef")
    assert "incremental" not in render(report)


def test_properties_that_lack_a_part_are_unknown(tmp_path: Path) -> None:
    copy = Path(shutil.copytree(OTHERS / "file-source", tmp_path / "copy"))
    (metadata,) = copy.rglob("_metadata")
    whole = metadata.read_bytes()
    assert whole.count(b"checkpointTypet") == 1
    # Java sets a field to null that a serialized object does not name.
    metadata.write_bytes(whole.replace(b"checkpointTypet", b"checkpointKindt"))
    (report,) = described(copy)
    assert not report.problems
    assert report.restart is not None
    assert report.restart.action == "unknown"
    assert any("its properties lack a part" in note for note in report.notes)


def test_files_that_cannot_be_reached_are_named_and_not_checked(reports: dict[str, Report]) -> None:
    report = reports["hdfs-shared"]
    assert not report.problems
    assert any("hdfs://nn1:8020/" in note and "not checked" in note for note in report.notes)
    assert operator(report, KEYED).state_bytes
    assert "as far as can be seen from here" in render(report)


def test_the_old_consumer_has_positions_that_are_not_read(reports: dict[str, Report]) -> None:
    report = reports["legacy-kafka-consumer"]
    assert not report.problems
    assert "FlinkKafkaConsumer" in report.steps[-1].sources[0].words
    assert "no Kafka partition had been read" not in render(report)


LIKE, NATIVE = (next((OTHERS / name).rglob("_metadata")) for name in ("file-source", "native-savepoint"))
COMMITTER, WRITER = "streaming_committer_raw_states", "writer_raw_states"
KAFKA = fm.kafka("orders", 41)
NULS = bytes(200)
WRITTEN: dict[str, tuple[Sequence[bytes], str, str]] = {
    "channel state of merged files": (
        [fm.operator("f", channel=fm.merged(fm.own("gone", 64), 64))],
        "impossible",
        "gone of operator f is missing",
    ),
    "operator state of merged files": (
        [fm.operator("f", state=fm.lists({"mine": [b"x"]}, stream=fm.segment("/gone", 64)))],
        "impossible",
        "state file /gone of operator f is missing",
    ),
    "a handle of nothing": (
        [fm.operator("f", channel=fm.merged(fm.NOTHING, 64))],
        "impossible",
        "has no stream to open",
    ),
    "keyed state of NULs": (
        [fm.operator("f", keys=fm.keyed(fm.inline(NULS)))],
        "impossible",
        "f: Flink refuses its keyed state: Incompatib",
    ),
    "two sources of one name": (
        [KAFKA, fm.kafka("payments", 7, number=8)],
        "restore",
        "orders partition 0 at 41, payments partition 0 at 7",
    ),
    "an empty source of any connector": (
        [fm.source("Source: any", coordinator=fm.enumerator(1, fm.ints(0)))],
        "restore",
        "source Source: any: unknown source",
    ),
    "a source's coordinator alone": (
        [KAFKA, fm.operator("Source: any", coordinator=b"opaque")],
        "restore",
        "not looked at: what the coordinator of Source: any keeps (6 bytes)",
    ),
    "committables of Pulsar": (
        [KAFKA, fm.operator("c", state=fm.lists({COMMITTER: [fm.committables(fm.longs(3, 0) + fm.utf("t"))]}))],
        "restore",
        "not looked at: what the sink c has in its state",
    ),
    "committables of Kafka": (
        [KAFKA, fm.operator("c", state=fm.lists({COMMITTER: [fm.committables(b"\0\0" + fm.longs(3) + fm.utf("t"))]}))],
        "restore",
        "First it commits 1 prepared transaction",
    ),
    "writers of RocketMQ": (
        [KAFKA, fm.operator("w", state=fm.lists({WRITER: [fm.versioned(1, fm.utf("p") + fm.ints(7))]}))],
        "restore",
        "not looked at: what the sink w has in its state",
    ),
    "writers of an old Kafka sink": (
        [KAFKA, fm.operator("w", state=fm.lists({WRITER: [fm.versioned(1, fm.utf("p"))]}))],
        "restore",
        "job: sink = exactly-once (transactions)",
    ),
    "writers without state": (
        [KAFKA, fm.operator("w", state=fm.lists({WRITER: []}))],
        "restore",
        "The empty state of w is that of a Kafka sink that is not transactional",
    ),
    "writers of two sinks of one name": (
        [
            KAFKA,
            fm.operator("w", state=fm.lists({WRITER: [fm.versioned(1, fm.utf("p"))]}), number=8),
            fm.operator("w", state=fm.lists({WRITER: []}), number=7),
        ],
        "restore",
        "job: sink = exactly-once (transactions) and no transactions",
    ),
    "a Kafka source at its end": (
        [fm.source("Source: kafka", coordinator=fm.enumerator(2, fm.ints(1) + fm.utf("t") + fm.ints(0, 0) + b"\1"))],
        "restore",
        "Restored from chk-5 now, it reads nothing again: 1 Kafka partition had been read to the end",
    ),
    "raw keyed state": (
        [fm.operator("f", raw=fm.keyed(fm.inline(b"timers")))],
        "restore",
        "not looked at: the keyed state of f",
    ),
    "a broadcast state": (
        [fm.operator("f", state=fm.lists({"rules": [b""]}, "BROADCAST"))],
        "restore",
        "state rules (broadcast): not read",
    ),
    "all finished": (
        [fm.operator("f", finished=True)],
        "restore",
        "Restored from chk-5 now, the job ends at once",
    ),
    "files in two places": (
        [
            fm.operator("f", keys=fm.keyed(fm.file("oss://b/x/1", 7))),
            fm.operator("g", keys=fm.keyed(fm.file("gs://b/y/2", 8)), number=2),
        ],
        "restore",
        "needs 1 file (8 bytes) in gs://b/y, 1 file (7 bytes) in oss://b/x, which cannot be reached",
    ),
}
"""Operators of a checkpoint, what a restore of it does, and words of the report."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The reports on WRITTEN, on state of a master hook, and on a vendor's properties, by one process."""
    folder = tmp_path_factory.mktemp("with a space, #1%20")
    contents = {name: fm.metadata(*operators, like=LIKE) for name, (operators, _, _) in WRITTEN.items()}
    contents["hook"] = fm.metadata(KAFKA, like=LIKE, hooks=[fm.hook("reader-group", b"12345")])
    contents["no format"] = fm.metadata(KAFKA, like=NATIVE).replace(b"\nformatType", b"\nformatKind")
    contents["vendor"] = fm.metadata(KAFKA, like=LIKE).replace(
        b"checkpoint.CheckpointType", b"checkpoint.VendorsOwnType"
    )
    for name, content in contents.items():
        (folder / name / "chk-5").mkdir(parents=True)
        (folder / name / "chk-5" / "_metadata").write_bytes(content)
    return dict(zip(contents, described(*(folder / name / "chk-5" for name in contents)), strict=True))


@pytest.mark.parametrize("name", WRITTEN)
def test_what_others_wrote(name: str, written: dict[str, Report]) -> None:
    _, action, words = WRITTEN[name]
    report = written[name]
    assert report.restart is not None
    assert report.restart.action == action
    assert bool(report.problems) == (action == "impossible")
    assert words in render(report)


def test_state_of_a_master_hook_is_named(written: dict[str, Report]) -> None:
    assert "not looked at: the state of master hooks: reader-group (5 bytes)" in render(written["hook"])


@pytest.mark.parametrize(("name", "action"), [("vendor", "unknown"), ("no format", "restore")])
def test_other_properties(name: str, action: str, written: dict[str, Report]) -> None:
    """Of a class that is not here, and without a field that no restore reads."""
    report = written[name]
    assert report.restart is not None
    assert (report.restart.action, report.problems) == (action, [])


# Describes each folder in one JVM, and says what ended a description that no message of ours did.
DESCRIBE_ALL = """
import json, sys, traceback
from pathlib import Path
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.flink.report import describe, folder_report
from faultline.inspector.recognize import engine_of
from faultline.inspector.render.prose import render
with flink_jvm([]) as jvm:
    for folder in map(Path, sys.argv[1:]):
        found = ""
        try:
            if engine_of(folder) == "flink":
                report, folders = folder_report(folder)
                describe(jvm, report, folders, 3)
                assert report.restart is not None and render(report)
        except InspectorError:
            pass
        except Exception:
            found = traceback.format_exc()
        print(json.dumps(found), flush=True)
"""
GOLDEN = [
    *sorted(folder for release in releases("flink") for folder in release.iterdir() if folder.is_dir()),
    *sorted(OTHERS.iterdir()),
]
COPIES, MANY = 4, 40
"""Damaged copies of each golden folder: a quarter of them in the tiers before `full`, and those of `full` alone."""


def tried(folder: Path, tmp_path: Path, numbers: range) -> None:
    """Damage copies of a folder and describe them all in one JVM."""
    done = {}
    for seed in numbers:
        copy = Path(shutil.copytree(folder, tmp_path / str(seed)))
        done[seed] = damage(copy, random.Random(seed))
    command = [str(PYTHON), "-c", DESCRIBE_ALL, *(str(tmp_path / str(seed)) for seed in numbers)]
    ended = process(command, {"PYTHONPATH": str(ROOT)}, seconds=900)
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(found) == len(numbers), ended.stderr[-2000:]
    bad = {seed: (done[seed], trace) for seed, trace in zip(numbers, found, strict=True) if trace}
    assert not bad, bad


def test_what_is_damaged_is_described_or_refused(tmp_path: Path) -> None:
    for at, folder in enumerate(GOLDEN[: 3 if len(seeds(COPIES)) == 1 else None]):
        tried(folder, tmp_path / str(at), seeds(COPIES))


@pytest.mark.full
@pytest.mark.parametrize("folder", GOLDEN, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_whatever_is_damaged_is_described_or_refused(folder: Path, tmp_path: Path) -> None:
    first = seeds(COPIES).stop
    tried(folder, tmp_path, range(first, first + MANY))
