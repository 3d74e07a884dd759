"""The output folder, the sink's log and the checkpoint, as Spark writes them and as people damage them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verdict.model import Unknown
from verdict.spark_checkpoint import Commit, newest_commit
from verdict.spark_output import line_at, lines, list_output

UUIDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(20)]


def part(number: int) -> str:
    return f"part-00000-{UUIDS[number]}-c000.txt"


def write_part(folder: Path, name: str, text: str = "line\n") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def write_log(folder: Path, batch: str, names: list[str], root: str | None = None, size: int = 5) -> None:
    log = folder / "_spark_metadata"
    log.mkdir(exist_ok=True, parents=True)
    entries = [
        json.dumps({"path": f"file://{root or folder}/{name}", "size": size, "isDir": False, "action": "add"})
        for name in names
    ]
    (log / batch).write_text("\n".join(["v1", *entries]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "output" / "visits_json"


def test_the_log_says_which_files_are_output(folder: Path) -> None:
    for number in range(3):
        write_part(folder, part(number))
    write_part(folder, "people.txt")
    write_part(folder, f".{part(0)}.crc")
    write_part(folder, "_temporary/0/" + part(9))
    write_log(folder, "0", [part(0)])
    write_log(folder, "1", [part(2)])
    output = list_output(folder, with_log=True)
    assert output.logged
    found = {file.name: file.leftover for file in output.files}
    assert found == {part(0): False, part(2): False, part(1): True, "people.txt": False}


def test_the_newest_compact_log_stands_for_all_before_it(folder: Path) -> None:
    for number in range(12):
        write_part(folder, part(number))
    # Batch 9 is the compaction of 0 to 9; of the single logs before it some are deleted, one is still there.
    write_log(folder, "8", [part(8)])
    write_log(folder, "9.compact", [part(number) for number in range(10)])
    write_log(folder, "10", [part(10)])
    (folder / "_spark_metadata" / ".10.crc").write_bytes(b"crc")
    output = list_output(folder, with_log=True)
    assert sorted(file.name for file in output.files if not file.leftover) == sorted(part(n) for n in range(11))
    assert [file.name for file in output.files if file.leftover] == [part(11)]


def test_paths_written_under_another_root_are_found_below_the_folder(folder: Path) -> None:
    write_part(folder, part(0))
    write_part(folder, "day=1/" + part(1))
    write_log(folder, "0", [part(0), "day=1/" + part(1)], root="/faultline/output/visits_json")
    write_log(folder, "1", [part(2)], root="/elsewhere/visits_json/x/visits_json")
    output = list_output(folder, with_log=True)
    assert [file.path for file in output.files] == [folder / part(0), folder / "day=1" / part(1)]
    assert output.missing == {part(2): 1}


def test_paths_are_uris(tmp_path: Path) -> None:
    folder = tmp_path / "my output" / "visits json"
    write_part(folder, part(0))
    write_log(folder, "0", [part(0)], root=str(folder).replace(" ", "%20"))
    assert [file.name for file in list_output(folder, with_log=True).files] == [part(0)]


def test_a_logged_file_that_is_gone_is_missing_and_one_that_grew_is_told(folder: Path) -> None:
    write_part(folder, part(1), "line\nmore\n")
    write_log(folder, "3", [part(0), part(1)])
    output = list_output(folder, with_log=True)
    assert output.missing == {part(0): 3}
    assert output.resized == [f"{part(1)} has 10 bytes, but batch 3 of the log wrote 5"]


@pytest.mark.parametrize("damage", ["", "v2\n", 'v1\n{"path": "x"}', "v1\nnonsense"])
def test_a_damaged_log_is_unknown(folder: Path, damage: str) -> None:
    write_log(folder, "0", [])
    (folder / "_spark_metadata" / "0").write_text(damage)
    with pytest.raises(Unknown, match="_spark_metadata"):
        list_output(folder, with_log=True)


def test_without_a_log_every_data_file_counts(folder: Path) -> None:
    write_part(folder, "batch=0/" + part(0))
    write_part(folder, "batch=1/" + part(1))
    write_part(folder, "_SUCCESS")
    write_part(folder, ".hidden/" + part(2))
    output = list_output(folder, with_log=False)
    assert [(file.name, file.leftover) for file in output.files] == [
        ("batch=0/" + part(0), False),
        ("batch=1/" + part(1), False),
    ]


def test_no_folder_is_no_output(folder: Path) -> None:
    output = list_output(folder, with_log=True)
    assert not output.exists
    assert not output.files


def test_lines_keep_their_bytes_and_their_place(folder: Path) -> None:
    write_part(folder, "x", "")
    (folder / "x").write_bytes(b"one\n\n\xff\r\nlast")
    (file,) = list_output(folder, with_log=False).files
    found = [place for starts, texts in lines(file) for place in zip(starts, texts, strict=True)]
    assert found == [(0, b"one"), (4, b""), (5, b"\xff\r"), (8, b"last")]
    assert [line_at(file, position) for position, _ in found] == [text for _, text in found]


def write_checkpoint(checkpoint: Path, batch: int, ends: str, *, committed: bool = True) -> None:
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{ends}')
    if committed:
        (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        (checkpoint / "commits" / f".{batch}.crc").write_bytes(b"crc")


def test_the_newest_committed_batch_is_found_by_number(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 9, '{"visits":{"0":90,"1":91}}')
    write_checkpoint(tmp_path, 10, '{"visits":{"0":100,"1":101}}')
    write_checkpoint(tmp_path, 11, '{"visits":{"0":110,"1":111}}', committed=False)
    assert newest_commit(tmp_path, "visits") == Commit(10, {0: 100, 1: 101})


def test_no_checkpoint_is_no_commit(tmp_path: Path) -> None:
    assert newest_commit(tmp_path / "none", "visits") is None
    write_checkpoint(tmp_path, 0, '{"visits":{"0":1}}', committed=False)
    assert newest_commit(tmp_path, "visits") is None


@pytest.mark.parametrize("ends", ["nonsense", '{"other":{"0":1}}', "[1]", "-", '{"visits":{"0":"x"}}'])
def test_offsets_that_say_nothing_of_the_topic_are_unknown(tmp_path: Path, ends: str) -> None:
    write_checkpoint(tmp_path, 0, ends)
    with pytest.raises(Unknown, match="offsets/0"):
        newest_commit(tmp_path, "visits")


def test_a_commit_without_its_offsets_is_unknown(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 0, '{"visits":{"0":1}}')
    (tmp_path / "offsets" / "0").unlink()
    with pytest.raises(Unknown, match="cannot be read"):
        newest_commit(tmp_path, "visits")
