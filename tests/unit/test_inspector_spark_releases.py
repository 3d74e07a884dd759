"""The inspector on checkpoints of every release of Spark that was tried, and on versions that it does not know."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from faultline.inspector.__main__ import main
from faultline.inspector.model import Report
from faultline.inspector.render.prose import render, restart_sentence
from faultline.inspector.spark.releases import TRIED, is_before
from faultline.inspector.spark.report import read_report
from faultline.inspector.spark.state import list_operators
from tests.called import call
from tests.golden.archives import golden, releases

ALL = sorted(path.parent for release in releases("spark") for path in release.glob("*/checkpoint"))
IDS = [f"{path.parent.name}/{path.name}" for path in ALL]
VERSIONS = {
    "offsets_v2": ("version 2", "version 1"),
    "state_ids": ("version 1", "version 2"),
    "named_sink": ("version 2", "version 3"),
    "named_sources": ("version 2", "version 1"),
}
"""Versions of offsets and commits, for the recipes where one is not 1."""


def opened(folder: Path) -> Report:
    return read_report(folder / "checkpoint", None, None)


def copied(release: str, recipe: str, target: Path) -> Path:
    return Path(
        shutil.copytree(golden(f"spark-{release}") / recipe, target / recipe, ignore=shutil.ignore_patterns("*.crc"))
    )


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call(main, "--no-lag", *arguments)


@pytest.mark.parametrize("folder", ALL, ids=IDS)
def test_a_healthy_checkpoint_has_no_problem_its_release_and_the_versions_of_its_logs(folder: Path) -> None:
    report = opened(folder)
    list_operators(folder / "checkpoint", report.problems, report.notes)
    assert report.problems == []
    assert report.restart is not None
    assert report.restart.action in ("continue", "re-run")
    assert report.steps
    assert all(step.sources for step in report.steps)
    assert all(source.kind != "unknown" for step in report.steps for source in step.sources)
    # 4.1 writes the same settings as 4.0.
    together = {"4.0": ["4.0", "4.1"], "4.1": ["4.0", "4.1"]}
    release = folder.parent.name.removeprefix("spark-")
    assert report.releases == together.get(release, [release])
    offsets, commits = VERSIONS.get(folder.name, ("version 1", "version 1"))
    if folder.parent.name == "spark-4.2" and folder.name in ("named_sources", "named_sink"):
        # 4.2 names the folders of the sources, and still numbers their offsets.
        offsets = "version 1"
    assert report.formats == {"offsets": offsets, "commits": commits}


def test_every_tried_release_has_golden_checkpoints() -> None:
    assert {path.parent.name for path in ALL} == {f"spark-{release}" for release in TRIED}


@pytest.mark.parametrize("release", ["4.2", "4.3"])
def test_files_of_a_named_source_are_found_under_its_name(release: str) -> None:
    report = opened(golden(f"spark-{release}") / "named_sources")
    files = [Path(name).name for step in report.steps for source in step.sources for name in source.files]
    assert files == [f"visits-{number:02d}.json" for number in range(4)]
    rates = [source for step in report.steps for source in step.sources if source.kind == "rate"]
    assert len(rates) == len(report.steps)
    names = {source.name for step in report.steps for source in step.sources}
    assert names == ({"devices", "clock"} if release == "4.3" else {""})


def test_sources_of_a_v2_file_go_by_name_whatever_their_order(tmp_path: Path) -> None:
    folder = copied("4.3", "named_sources", tmp_path)
    before = opened(folder)
    for file in (folder / "checkpoint" / "offsets").glob("[0-9]*"):
        version, metadata, *sources = file.read_text().splitlines()
        file.write_text("\n".join([version, metadata, *sources[:: -1 if int(file.name) % 2 else 1]]))
    after = opened(folder)
    assert [step.sources for step in after.steps] == [step.sources for step in before.steps]


def test_a_name_without_an_offset_is_a_line_cut_short(tmp_path: Path) -> None:
    folder = copied("4.3", "named_sources", tmp_path)
    file = folder / "checkpoint" / "offsets" / "4"
    file.write_text(file.read_text().rpartition(":")[0])
    report = opened(folder)
    assert any(str(file) in problem and "cut short" in problem for problem in report.problems)
    assert report.restart is not None
    assert report.restart.action == "impossible"


def test_a_commit_says_its_state_ids_and_sinks() -> None:
    ids = opened(golden("spark-4.3") / "state_ids").steps[-1].facts
    assert ids == {"state ids": "the commit names the state files of 2 stores by id (operator 0)"}
    sink = opened(golden("spark-4.3") / "named_sink")
    assert sink.steps[-1].facts == {"sink visits_text": "FileStreamSink"}
    assert "sink visits_text: FileStreamSink" in render(sink)


@pytest.mark.parametrize("release", TRIED)
def test_gaps_of_asynchronous_progress_tracking_are_no_damage(release: str) -> None:
    report = opened(golden(f"spark-{release}") / "async_progress")
    assert report.restart is not None
    assert (report.restart.action, report.restart.step) == ("continue", report.counts["last"] + 1)
    assert "without that option a restart fails" in restart_sentence(report)
    assert any("asynchronous progress tracking" in note for note in report.notes)


def test_a_single_gap_is_still_a_gap(tmp_path: Path) -> None:
    folder = copied("4.3", "offsets_v2", tmp_path)
    for name in ("offsets", "commits"):
        (folder / "checkpoint" / name / "2").unlink()
    report = opened(folder)
    assert any("offsets/2 is missing" in problem for problem in report.problems)
    assert report.restart is not None
    assert report.restart.action == "impossible"


@pytest.mark.parametrize(
    ("release", "action", "elsewhere"),
    [("4.1", "continue", {"impossible": ["4.2", "4.3"]}), ("4.3", "impossible", {"continue": ["3.5", "4.0", "4.1"]})],
)
def test_a_missing_metadata_is_judged_by_the_release(
    tmp_path: Path, release: str, action: str, elsewhere: dict[str, list[str]]
) -> None:
    folder = copied(release, "files_windowed", tmp_path)
    (folder / "checkpoint" / "metadata").unlink()
    restart = opened(folder).restart
    assert restart is not None
    assert restart.action == action
    assert {each.action: each.releases for each in restart.elsewhere} == elsewhere


def test_releases_that_cannot_read_a_version_are_named() -> None:
    restart = opened(golden("spark-4.3") / "named_sink").restart
    assert restart is not None
    assert next((each.releases, each.action) for each in restart.elsewhere) == (["3.5", "4.0", "4.1"], "impossible")
    assert "With Spark 3.5, 4.0 and 4.1 a restart fails" in restart_sentence(opened(golden("spark-4.3") / "named_sink"))


@pytest.mark.parametrize("name", ["offsets/4", "offsets/2", "commits/4", "commits/1"])
def test_a_version_that_is_not_known_is_called_unknown_and_the_rest_is_shown(tmp_path: Path, name: str) -> None:
    folder = copied("4.3", "named_sources", tmp_path)
    file = folder / "checkpoint" / name
    file.write_text("v9\n" + file.read_text().partition("\n")[2])
    report = opened(folder)
    assert report.problems == []
    assert any(name in note and "unknown" in note and "version 9" in note for note in report.notes)
    assert report.restart is not None
    assert report.restart.action == ("unknown" if name.endswith("/4") else "continue")
    done = command(str(folder / "checkpoint"))
    assert done.returncode == 0
    # The lines are like those of a version that is known, and shown.
    assert "devices: files: log offset 2, visits-02.json" in done.stdout
    assert json.loads(command("--json", str(folder / "checkpoint")).stdout)["restart"]["step"] is not None


def test_a_version_with_other_lines_is_unknown_too(tmp_path: Path) -> None:
    folder = copied("4.3", "named_sources", tmp_path)
    (folder / "checkpoint" / "offsets" / "4").write_bytes(b"v3\n\x08\x96\x01 something else")
    report = opened(folder)
    assert report.problems == []
    assert report.steps[-1].state == "unknown"
    assert "batch 4, unknown: it is of version 3, which is not known here" in render(report)


def test_settings_that_no_tried_release_writes_are_of_a_release_that_is_not_known(tmp_path: Path) -> None:
    folder = copied("4.3", "offsets_v2", tmp_path)
    file = folder / "checkpoint" / "offsets" / "3"
    file.write_text(file.read_text().replace('"conf":{', '"conf":{"spark.sql.streaming.of.the.future":"1",'))
    report = opened(folder)
    assert report.releases == []
    assert "written by a release of Spark that is not known here" in render(report)


@pytest.mark.parametrize("content", ["v1\n", "v1\n{}", "v1"])
def test_a_commit_without_its_fields_has_sparks_defaults(tmp_path: Path, content: str) -> None:
    folder = copied("4.0", "kafka_killed", tmp_path)
    (folder / "checkpoint" / "commits" / "2").write_text(content)
    assert opened(folder).problems == []


def test_a_first_batch_of_several_files_is_no_damage(tmp_path: Path) -> None:
    folder = copied("4.3", "offsets_v2", tmp_path)
    log = folder / "checkpoint" / "sources" / "0" / "0"
    log.write_text(log.read_text() + "\n" + log.read_text().splitlines()[1])
    report = opened(folder)
    assert report.problems == []
    assert len(report.steps[0].sources[0].files) == 2


def test_an_offset_that_is_text_of_a_source_of_ones_own_is_shown(tmp_path: Path) -> None:
    folder = copied("4.0", "kafka_killed", tmp_path)
    for file in (folder / "checkpoint" / "offsets").glob("[0-9]*"):
        file.write_text("\n".join([*file.read_text().splitlines()[:2], f"position/{file.name}"]))
    report = opened(folder)
    assert not [problem for problem in report.problems if "offsets" in problem]
    assert 'offset "position/3" of a kind that is not known here' in render(report)


@pytest.mark.parametrize(
    ("recipe", "gone", "fails"),
    [
        ("files_windowed", "state/0/0/13.delta", True),
        ("files_windowed", "state/0/1/1.delta", False),
        ("rocksdb", "state/0/0/3.changelog", False),
        ("rocksdb", "state/0/0/4.*", True),
        ("rocksdb", "state/0/1/*.zip", False),
    ],
)
def test_state_that_the_next_batch_needs_is_missed_and_no_other(
    tmp_path: Path, recipe: str, gone: str, fails: bool
) -> None:
    folder = copied("4.3", recipe, tmp_path)
    for path in (folder / "checkpoint").glob(gone):
        path.unlink()
    report = opened(folder)
    assert report.restart is not None
    assert (report.restart.action == "impossible") == fails == bool(report.problems)


def test_state_is_said_by_the_kind_of_its_files() -> None:
    notes = {
        recipe: list_operators(golden("spark-4.3") / recipe / "checkpoint", [], [])[0].state[0].note
        for recipe in ("files_windowed", "rocksdb", "state_ids")
    }
    assert notes["files_windowed"].startswith("HDFS-backed: 26 delta files, the newest of version 13, 2 snapshots")
    assert notes["rocksdb"].startswith("RocksDB: 8 change logs, the newest of version 4, 4 snapshots")
    assert "named by state ids" in notes["state_ids"]


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3"])
def test_states_of_a_processor_go_by_their_names_without_a_jvm(release: str) -> None:
    notes: list[str] = []
    folder = golden(f"spark-{release}") / "processor" / "checkpoint"
    [operator] = list_operators(folder, [], notes)
    assert notes == [
        f"{folder}/state/0 was written in file:/tmp/faultline-golden/spark-{release}/processor/checkpoint, and "
        "names the schema files of its state by that absolute path: a query that starts from this copy fails unless "
        "they are there too"
    ]
    restart = read_report(folder, None, None).restart
    assert restart is not None
    assert f"the schema files of state/0, which its metadata names in file:/tmp/faultline-golden/spark-{release}" in (
        " ".join(restart.details)
    )
    assert [(state.name, state.kind) for state in operator.state] == [
        ("by_minute", "MapState"), ("minutes", "ListState"), ("count", "ValueState"),
        ("$procTimers_keyToTimestamp", "timers"),
    ]  # fmt: skip
    assert operator.state[0].note.startswith("RocksDB: ")
    assert operator.state[1].note == "in the same store as by_minute"


def test_operator_metadata_that_is_cut_short_is_a_problem_with_its_name(tmp_path: Path) -> None:
    checkpoint = copied("4.0", "processor", tmp_path) / "checkpoint"
    [file] = (checkpoint / "state" / "0" / "_metadata" / "v2").glob("[0-9]*")
    file.write_bytes(file.read_bytes()[:-40])
    problems: list[str] = []
    [operator] = list_operators(checkpoint, problems, [])
    assert problems == [f"{file} is cut short or not JSON"]
    assert operator.state == []


def test_named_sources_of_4_2_do_not_start_with_4_3() -> None:
    restart = opened(golden("spark-4.2") / "named_sources").restart
    assert restart is not None
    assert restart.action == "continue"
    assert [(each.releases, each.action) for each in restart.elsewhere] == [(["4.3"], "impossible")]


def test_releases_are_compared_by_their_numbers() -> None:
    assert is_before("4.9", "4.10")
    assert is_before("3.5", "4.0")
    assert not is_before("4.10", "4.10")
