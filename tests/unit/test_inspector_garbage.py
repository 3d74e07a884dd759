"""Files that nothing needs: those that are planted are found, and nothing that is needed is listed. No JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from faultline.inspector.__main__ import main
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.garbage import TASK_OWNED_SECONDS
from faultline.inspector.flink.garbage import find_garbage as flink_garbage
from faultline.inspector.garbage import IN_A_LINE, Garbage, Leftover, outside
from faultline.inspector.model import as_dict
from faultline.inspector.spark.garbage import find_garbage as spark_garbage
from faultline.inspector.spark.report import read_report
from tests.golden.archives import golden, releases
from tests.unit.test_inspector_others import query

NOW, LONG_AGO, NAME = 1_790_000_000, 1_700_000_000, "0d9c6b1e-6a0c-4c9b-9f0e-0123456789ab"
RUN = "fcae8f762f46a7169c2746e144481ea5"
FLINK = [folder for release in releases("flink") for folder in sorted(release.iterdir()) if folder.is_dir()]
SPARK = [folder for release in releases("spark") for folder in sorted(release.iterdir()) if folder.is_dir()]


def aged(tmp_path: Path, folder: Path) -> Path:
    """Copy a golden folder as a run leaves it: steps are complete now, and what they need was written long ago."""
    copy = Path(shutil.copytree(folder, tmp_path / folder.name))
    for file in copy.rglob("*"):
        if file.is_file():
            is_a_step = file.name == "_metadata" or file.parent.name == "commits"
            os.utime(file, (NOW, NOW) if is_a_step else (LONG_AGO, LONG_AGO))
    return copy


def plant(file: Path, at: float = LONG_AGO) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"left over")
    os.utime(file, (at, at))
    return str(file)


def remove(found: Garbage) -> None:
    """Type the lines that a report ends with."""
    for line in found.lines():
        subprocess.run(["bash", "-ec", line], check=True)


def listed(found: Garbage) -> set[str]:
    assert not found.problems
    return {each.path for each in found.files}


def below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", FLINK, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_what_no_checkpoint_names_is_found_and_nothing_else(tmp_path: Path, folder: Path) -> None:
    copy = aged(tmp_path, folder)
    before = below(copy)
    assert listed(flink_garbage(copy)) == set()
    job = next(copy.glob("*/chk-*")).parent
    planted = {plant(job / folder / str(uuid.uuid4())) for folder in ("shared", "taskowned", "chk-0")}
    found = flink_garbage(copy)
    assert listed(found) == planted == listed(flink_garbage(job))
    remove(found)
    assert below(copy) == before
    assert listed(flink_garbage(copy)) == set()


def test_what_may_still_be_written_is_not_listed(tmp_path: Path) -> None:
    copy = aged(tmp_path, golden("flink-2.2") / "rocksdb")
    job = copy / RUN
    plant(job / "shared" / NAME, NOW + 1)
    plant(job / "taskowned" / NAME, NOW - TASK_OWNED_SECONDS + 1)
    plant(job / "shared" / "not-of-flink")
    plant(job / "shared" / "op_window_attempt_1" / NAME)
    plant(job / "chk-99" / NAME)
    plant(copy / "savepoint-fcae8f-000000000000" / NAME)
    plant(copy / ("a" * 32) / "shared" / NAME)
    plant(copy / ("a" * 32) / "chk-1" / NAME)
    found = flink_garbage(copy)
    assert listed(found) == set()
    words = "\n".join(found.unseen)
    for place in (f"{RUN}/shared", "chk-99", "savepoint-fcae8f-000000000000", "a" * 32):
        assert f"{copy}/" in words and place in words
    assert "running job" in words and "savepoints elsewhere" in words


def test_a_checkpoint_that_was_not_copied_needs_its_files_no_more(tmp_path: Path) -> None:
    # Of the job's checkpoints 9, 10 and 11 the archive has the last one, and what all of them share.
    (job,) = aged(tmp_path, golden("flink-others") / "hdfs-shared").iterdir()
    metadata = (job / "chk-11" / "_metadata").read_bytes()
    unnamed = {str(file) for file in (job / "shared").iterdir() if file.name.encode() not in metadata}
    assert listed(flink_garbage(job)) == unnamed
    assert 0 < len(unnamed) < len(list((job / "shared").iterdir()))


def test_the_files_of_a_job_that_another_one_goes_on_with_are_needed(tmp_path: Path) -> None:
    copy = aged(tmp_path, golden("flink-2.2") / "rocksdb")
    claimed, other = Path(plant(copy / RUN / "shared" / NAME)), copy / ("b" * 32) / "chk-7"
    assert listed(flink_garbage(copy / RUN)) == {str(claimed)}
    other.mkdir(parents=True)
    (other / "_metadata").write_bytes(b"\x49\x60\x67\x2d\0a" + f"file:/gone/{RUN}/shared/{NAME}".encode())
    assert listed(flink_garbage(copy / RUN)) == listed(flink_garbage(copy)) == set()


def test_nothing_is_listed_when_a_checkpoint_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = aged(tmp_path, golden("flink-2.2") / "rocksdb")
    plant(copy / RUN / "shared" / NAME)
    closed, read_bytes = copy / RUN / "chk-3" / "_metadata", Path.read_bytes

    def refuse(file: Path) -> bytes:
        if file == closed:
            raise PermissionError(13, "Permission denied", str(file))
        return read_bytes(file)

    # A disk that fails; a test may run as root, whom no mode of a file stops.
    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = flink_garbage(copy)
    assert not found.files
    assert found.problems == [f"{closed} cannot be read: Permission denied"]


def test_one_checkpoint_is_refused_with_the_folder_to_name() -> None:
    chk = golden("flink-2.2") / "rocksdb" / RUN / "chk-3"
    for path in (chk, chk / "_metadata"):
        with pytest.raises(InspectorError, match="is one checkpoint; name the folder that it is in"):
            flink_garbage(path)


def keep_the_newest(checkpoint: Path, batches: int) -> int:
    """Remove old batches as Spark does with few to retain, but for their commits; return the first that is kept."""
    numbers = sorted(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdecimal())
    for number in numbers[:-batches]:
        (checkpoint / "offsets" / str(number)).unlink()
        (checkpoint / "offsets" / f".{number}.crc").unlink(missing_ok=True)
    return numbers[-batches:][0]


def spark_copy(tmp_path: Path, folder: Path) -> tuple[Path, Path | None]:
    copy = aged(tmp_path, folder)
    return copy / "checkpoint", copy / "output" if (copy / "output").is_dir() else None


@pytest.mark.parametrize("folder", SPARK, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_restart_is_the_same_without_what_is_listed(tmp_path: Path, folder: Path) -> None:
    checkpoint, output = spark_copy(tmp_path, folder)
    assert listed(spark_garbage(checkpoint, output)) == set()
    keep_the_newest(checkpoint, 3)
    before = as_dict(read_report(checkpoint, None, output))
    found = spark_garbage(checkpoint, output)
    commits = [int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdecimal()]
    old = {str(checkpoint / "commits" / str(each)) for each in commits if each < before["counts"]["first"] - 1}
    assert {path for path in listed(found) if "/commits/" in path and not path.endswith(".crc")} == old
    remove(found)
    after = as_dict(read_report(checkpoint, None, output))
    for part in ("restart", "steps", "sink", "problems", "counts"):
        assert after[part] == before[part]


def test_temporary_files_and_output_that_no_batch_named_are_found(tmp_path: Path) -> None:
    checkpoint, output = spark_copy(tmp_path, golden("spark-4.2") / "files_windowed")
    assert output is not None
    whole = below(tmp_path)
    planted = {plant(checkpoint / place / f".7.{NAME}.tmp") for place in ("offsets", "commits", "sources/0")}
    planted.add(plant(output / "_spark_metadata" / f".7.{NAME}.tmp"))
    planted.add(plant(checkpoint / "offsets" / f"..7.{NAME}.tmp.crc"))
    part = output / f"part-00000-{NAME}-c000.json"
    planted |= {plant(part), plant(output / f".{part.name}.crc"), plant(output / "day=1" / part.name)}
    state = checkpoint / "state" / "0" / "0" / f".14.snapshot.{NAME}.tmp"
    # Before the oldest batch that is kept: a snapshot that is written beside many batches is younger.
    planted.add(plant(state, LONG_AGO - 1))
    plant(checkpoint / "state" / "0" / "1" / f".14.snapshot.{NAME}.tmp", LONG_AGO + 1)
    plant(checkpoint / "offsets" / f".13.{NAME}.tmp", NOW + 1)
    plant(output / f"part-00001-{NAME}-c000.json", NOW + 1)
    plant(output / "mine.json")
    plant(checkpoint / "notes.tmp")
    kept = below(tmp_path)
    found = spark_garbage(checkpoint, output)
    assert listed(found) == planted
    remove(found)
    assert whole < below(tmp_path) == kept - {str(Path(path).relative_to(tmp_path)) for path in planted}


def test_state_before_the_snapshot_that_the_oldest_batch_loads_is_found(tmp_path: Path) -> None:
    checkpoint, _ = spark_copy(tmp_path, golden("spark-4.2") / "files_windowed")
    assert keep_the_newest(checkpoint, 2) == 11
    names = {Path(path).name for path in listed(spark_garbage(checkpoint, None)) if "/state/" in path}
    assert names == {f"{n}.delta" for n in range(1, 11)} | {f".{n}.delta.crc" for n in range(1, 11)}
    # A snapshot that cannot be read is not what a restart loads.
    for snapshot in checkpoint.glob("state/0/*/11.snapshot"):
        snapshot.write_bytes(b"")
    assert not [path for path in listed(spark_garbage(checkpoint, None)) if "/state/" in path]


def test_state_with_ids_is_left_alone(tmp_path: Path) -> None:
    checkpoint, _ = spark_copy(tmp_path, golden("spark-4.2") / "state_ids")
    keep_the_newest(checkpoint, 2)
    found = spark_garbage(checkpoint, None)
    assert not [path for path in listed(found) if "/state/" in path]
    assert [sentence for sentence in found.unseen if "state ids" in sentence] == [found.unseen[-1]]


def test_files_of_rocksdb_that_only_old_snapshots_list_are_found(tmp_path: Path) -> None:
    checkpoint, _ = spark_copy(tmp_path, golden("spark-4.2") / "rocksdb")
    store = checkpoint / "state" / "0" / "0"
    for snapshot in store.glob("*.zip"):
        os.utime(snapshot, (NOW, NOW))
    loose = plant(store / "SSTs" / f"000004-{NAME}.sst")
    plant(store / "SSTs" / f"000010-{NAME}.sst", NOW + 1)
    assert keep_the_newest(checkpoint, 2) == 2
    found = {path for path in listed(spark_garbage(checkpoint, None)) if f"{store}/" in path}
    assert found == {loose, str(store / "1.changelog"), str(store / ".1.changelog.crc")}
    # A snapshot whose list cannot be read may need any of them.
    (store / "4.zip").write_bytes(b"PK")
    assert loose not in {each.path for each in spark_garbage(checkpoint, None).files}


def test_entries_that_a_compact_file_repeats_are_found(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, *[(f'{{"logOffset":{number}}}',) for number in range(12)])
    log = checkpoint / "sources" / "0"
    log.mkdir(parents=True)
    entry = '{{"path":"file:///in/{0}","timestamp":1,"batchId":{0}}}'.format
    for number in range(12):
        whole = (number + 1) % 3 == 0
        lines = [entry(each) for each in (range(number + 1) if whole else [number])]
        (log / f"{number}{'.compact' if whole else ''}").write_text("\n".join(["v1", *lines]))
    assert listed(spark_garbage(checkpoint, None)) == set()
    for first, kept in ((4, "2.compact"), (7, "5.compact"), (10, "8.compact")):
        assert keep_the_newest(checkpoint, 12 - first) == first
        found = {Path(path).name for path in listed(spark_garbage(checkpoint, None)) if path.startswith(str(log))}
        names = [name for name in below(log) if int(name.partition(".")[0]) < int(kept.partition(".")[0])]
        assert found == set(names)
    before = read_report(checkpoint, None, None).restart
    remove(spark_garbage(checkpoint, None))
    assert below(log) == {"8.compact", "9", "10", "11.compact"}
    assert read_report(checkpoint, None, None).restart == before


@pytest.mark.parametrize("gone", ["9.compact", "10"])
def test_no_output_is_listed_where_the_sinks_log_has_a_hole(tmp_path: Path, gone: str) -> None:
    checkpoint, output = spark_copy(tmp_path, golden("spark-4.2") / "files_windowed")
    assert output is not None
    plant(output / f"part-00000-{NAME}-c000.json")
    (output / "_spark_metadata" / gone).unlink()
    found = spark_garbage(checkpoint, output)
    assert not [each for each in found.files if each.path.startswith(str(output))]
    assert f"_spark_metadata/{gone} cannot be read" in "".join(found.problems)


def test_a_query_that_just_began_and_an_output_that_is_not_named(tmp_path: Path) -> None:
    checkpoint = query(tmp_path, ("-",), ("-",), commits=1)
    plant(checkpoint / "offsets" / f".1.{NAME}.tmp")
    found = spark_garbage(checkpoint, None)
    assert listed(found) == set()
    assert "no two batches that are committed" in found.unseen[-1]
    assert any("--sink" in sentence for sentence in found.unseen)


def test_the_command_prints_words_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint, output = spark_copy(tmp_path / "with space", golden("spark-4.2") / "files_windowed")
    part = plant(output / f"part-00000-{NAME}-c000.json") if output else ""
    words = ["--garbage", str(checkpoint), "--sink", str(output)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "1 file (9 bytes) that nothing here needs" in printed
    assert f" old: {part} (the sink's log does not name it" in printed
    assert printed.splitlines()[-1] == f"rm -- '{part}'"
    assert Path(part).exists()
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(each["path"], each["size"], each["changed_at"]) for each in document["files"]] == [(part, 9, LONG_AGO)]
    assert document["lines"] == [f"rm -- '{part}'"]
    with pytest.raises(SystemExit):
        main([*words, "--follow"])
    Path(part).unlink()
    assert main(words) == 0
    assert "rm --" not in capsys.readouterr().out
    (Path(str(output)) / "_spark_metadata" / "10").unlink()
    assert main(words) == 1


def test_many_files_are_several_lines_and_objects_have_their_own_command() -> None:
    found = Garbage("flink", "cp")
    for at in range(IN_A_LINE + 1):
        found.files.append(Leftover(f"/cp/{at}", at, NOW, "no checkpoint names it"))
    assert [line.count(" /cp/") for line in found.lines()] == [IN_A_LINE, 1]
    assert found.lines()[0].startswith(f"rm -- /cp/{IN_A_LINE} ")
    outside(found, "/cp", "/home/me/cp")
    assert found.lines()[1] == "rm -- /home/me/cp/0"
    found.files = [Leftover("s3://bucket/a b", 1, NOW, "no checkpoint names it")]
    assert found.lines() == ["aws s3 rm 's3://bucket/a b'"]
