"""The output folder, the sink's log and the checkpoint, as Spark writes them and as people damage them."""

from __future__ import annotations

import os
import random
import socket
import tracemalloc
from hashlib import blake2b
from pathlib import Path

import pytest

from faultline.verdict.checker import Moved
from faultline.verdict.model import Unknown
from faultline.verdict.spark import reader
from faultline.verdict.spark.checkpoint import newest_commit
from faultline.verdict.spark.lines import CHUNK_BYTES, LONG_BYTES, Part, Text, line_at, line_digest, read_lines
from faultline.verdict.spark.output import OutputFile, list_output
from faultline.verdict.spark.reader import LinesJob, lines_jobs, load_lines
from faultline.verdict.store import open_store
from tests.judge.spark_world import (
    FILES,
    FOREACH_APPEND,
    FOREACH_OVERWRITE,
    log_entry,
    make_pipe,
    part_name,
    random_world,
    write_output,
)


def part(number: int) -> str:
    return part_name(number, 0)


def write_part(folder: Path, name: str, text: str = "line\n") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def write_log(folder: Path, batch: str, names: list[str], root: str | None = None, size: int = 5) -> None:
    log = folder / "_spark_metadata"
    log.mkdir(exist_ok=True, parents=True)
    entries = [log_entry(f"{root or folder}/{name}", size) for name in names]
    (log / batch).write_text("\n".join(["v1", *entries]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "output" / "visits_json"


# --- Which files count ---------------------------------------------------------------------------------


def test_the_log_says_which_files_are_output(folder: Path) -> None:
    for number in range(3):
        write_part(folder, part(number))
    write_part(folder, "people.txt")
    write_part(folder, f".{part(0)}.crc")
    write_part(folder, "_temporary/0/" + part(9))
    write_log(folder, "0", [part(0)])
    write_log(folder, "1", [part(2)])
    output = list_output(folder, FILES, 1)
    found = {file.name: (file.leftover, file.order) for file in output.files}
    assert found == {part(0): (False, 0), part(2): (False, 1), part(1): (True, None), "people.txt": (False, None)}
    assert output.notes == []


def test_the_newest_compact_log_stands_for_all_before_it(folder: Path) -> None:
    for number in range(12):
        write_part(folder, part(number))
    # Batch 9 is the compaction of 0 to 9; of the single logs before it some are deleted, one is still there.
    write_log(folder, "8", [part(8)])
    write_log(folder, "9.compact", [part(number) for number in range(10)])
    write_log(folder, "10", [part(10)])
    (folder / "_spark_metadata" / ".10.crc").write_bytes(b"crc")
    output = list_output(folder, FILES, 10)
    assert sorted(file.name for file in output.files if not file.leftover) == sorted(part(n) for n in range(11))
    assert [file.name for file in output.files if file.leftover] == [part(11)]
    assert {file.order for file in output.files} == {*range(11), None}


def test_paths_written_under_another_root_are_found_below_the_folder(folder: Path) -> None:
    write_part(folder, part(0))
    write_part(folder, "day=1/" + part(1))
    write_log(folder, "0", [part(0), "day=1/" + part(1)], root="/faultline/output/visits_json")
    write_log(folder, "1", [part(2)], root="/faultline/output/visits_json")
    output = list_output(folder, FILES, 1)
    assert [file.path for file in output.files] == [folder / part(0), folder / "day=1" / part(1)]
    assert output.missing == {part(2): 1}


def test_a_reader_sees_the_files_of_one_root(folder: Path) -> None:
    """As after a move of the folder, with the query that goes on: its log has two paths, and a reader has one."""
    for number in range(3):
        write_part(folder, part(number))
    write_log(folder, "0", [part(0)], root="/faultline/output/visits_json")
    write_log(folder, "1", [part(1)], root="/elsewhere/visits_json/x/visits_json")
    write_log(folder, "2", [part(2)])
    output = list_output(folder, FILES, 2)
    assert [file.name for file in output.files] == [part(2)]
    assert [note for note in output.notes if "is not read: it was written under /faultline/output/visits_json" in note]


def test_files_that_readers_of_a_folder_pass_over_are_notes(folder: Path) -> None:
    for name in (part(0), f"day=1/{part(1)}", f"sub/{part(2)}", f"{part(3)}._COPYING_"):
        write_part(folder, name)
    output = list_output(folder, FOREACH_APPEND, None)
    assert [file.name for file in output.files] == [f"day=1/{part(1)}", part(0)]
    assert [note.rpartition(": ")[2] for note in output.notes] == ["it is being copied", "it is in a subfolder"]


def test_paths_are_uris(tmp_path: Path) -> None:
    folder = tmp_path / "my output" / "visits json"
    write_part(folder, part(0))
    write_log(folder, "0", [part(0)], root=str(folder).replace(" ", "%20"))
    assert [file.name for file in list_output(folder, FILES, 0).files] == [part(0)]


def test_a_logged_file_that_is_gone_is_missing_and_one_that_grew_is_noted(folder: Path) -> None:
    write_part(folder, part(1), "line\nmore\n")
    write_log(folder, "0", [])
    write_log(folder, "1", [part(0), part(1)])
    output = list_output(folder, FILES, 1)
    assert output.missing == {part(0): 1}
    assert output.notes == [f"{part(1)} has 10 bytes, but batch 1 of the log wrote 5"]


def test_many_files_of_another_size_are_three_notes_and_a_count(folder: Path) -> None:
    names = [part(number) for number in range(9)]
    for name in names:
        write_part(folder, name, "")
    write_log(folder, "0", names)
    notes = list_output(folder, FILES, 0).notes
    assert notes == [
        *(f"{name} has 0 bytes, but batch 0 of the log wrote 5" for name in names[:3]),
        "6 more files have another size than in the log",
    ]


def test_a_file_named_twice_is_read_twice(folder: Path) -> None:
    write_part(folder, part(0))
    write_log(folder, "0", [part(0)])
    write_log(folder, "1", [part(0)])
    output = list_output(folder, FILES, 1)
    assert [(file.name, file.order) for file in output.files] == [(part(0), 0), (part(0), 1)]
    assert output.notes == [f"{part(0)} is named again by batch 1 of the sink's log: readers read it again"]


def test_a_missing_file_of_no_bytes_is_a_note(folder: Path) -> None:
    write_log(folder, "0", [part(0)], size=0)
    output = list_output(folder, FILES, 0)
    assert output.missing == {}
    assert output.notes == [f"file {part(0)}, which batch 0 of the sink's log names, is missing; it was empty"]


@pytest.mark.parametrize(
    ("batches", "committed", "missing"),
    [
        (["0", "1", "3"], 3, 2),
        (["1", "2"], 2, 0),
        (["0", "1"], 2, 2),
        ([], 0, 0),
        (["9.compact", "11"], 11, 10),
        (["9.compact"], 12, 10),
        (["4.compact", "9.compact", "10", "99999999999999999999"], 10, 11),
    ],
)
def test_a_gap_in_the_log_is_unknown(folder: Path, batches: list[str], committed: int, missing: int) -> None:
    (folder / "_spark_metadata").mkdir(parents=True)
    for batch in batches:
        write_log(folder, batch, [])
    with pytest.raises(Unknown, match=rf"^the log is damaged: batch {missing} is missing in "):
        list_output(folder, FILES, committed)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "v2\n",
        'v1\n{"path": "x"}',
        "v1\nnonsense",
        'v1\n{"path": "file:///x", "size": -1, "action": "add"}',
        'v1\n{"path": "file:///x", "size": true, "action": "add"}',
        'v1\n{"path": "file:///x", "size": 1, "action": "delete"}',
        'v1\n{"path": 5, "size": 1, "action": "add"}',
        'v1\n{"path": "file:///", "size": 1, "action": "add"}',
        "v1\n" + "[" * 100_000,
    ],
)
def test_a_damaged_log_is_unknown(folder: Path, damage: str) -> None:
    write_log(folder, "0", [])
    (folder / "_spark_metadata" / "0").write_text(damage)
    with pytest.raises(Unknown, match=r"_spark_metadata/0 .*(damaged|cannot be read)"):
        list_output(folder, FILES, 0)


@pytest.mark.timeout(20)
def test_a_log_that_is_not_text_or_not_a_file_is_unknown(folder: Path) -> None:
    write_log(folder, "0", [])
    (folder / "_spark_metadata" / "0").write_bytes(b"v1\n\xff")
    with pytest.raises(Unknown, match="is damaged: it is not text"):
        list_output(folder, FILES, 0)
    (folder / "_spark_metadata" / "0").unlink()
    make_pipe(folder / "_spark_metadata" / "0")
    with pytest.raises(Unknown, match="is not a file"):
        list_output(folder, FILES, 0)


def test_files_without_a_log_are_unknown(folder: Path) -> None:
    write_part(folder, part(0))
    with pytest.raises(Unknown, match="has files but no _spark_metadata"):
        list_output(folder, FILES, 0)


def test_without_a_log_every_data_file_counts(folder: Path) -> None:
    write_part(folder, "batch_id=0/" + part(0))
    write_part(folder, "batch_id=11/" + part(1))
    write_part(folder, "batch_id=x/" + part(1))
    write_part(folder, "_SUCCESS")
    write_part(folder, ".hidden/" + part(2))
    found = [
        (file.name, file.leftover, file.order)
        for sink in (FOREACH_OVERWRITE, FOREACH_APPEND)
        for file in list_output(folder, sink, 0).files
    ]
    assert found == [
        ("batch_id=0/" + part(0), False, 0),
        ("batch_id=11/" + part(1), False, 11),
        ("batch_id=x/" + part(1), False, None),
        ("batch_id=0/" + part(0), False, None),
        ("batch_id=11/" + part(1), False, None),
        ("batch_id=x/" + part(1), False, None),
    ]


def test_no_folder_is_no_output_and_a_file_in_its_place_is_unknown(folder: Path) -> None:
    output = list_output(folder, FILES, 3)
    assert (output.files, output.notes) == ([], [f"the output folder {folder} does not exist"])
    write_part(folder.parent, "visits_json")
    with pytest.raises(Unknown, match="cannot be read: Not a directory"):
        list_output(folder, FILES, 3)


def test_what_is_not_a_file_is_named_and_not_read(folder: Path) -> None:
    write_part(folder, "sub/x.txt")
    make_pipe(folder / "sub" / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    (folder / "nowhere").symlink_to("gone")
    (folder / "itself").symlink_to("itself")
    (folder / "aaa").symlink_to("sub")
    (folder / "sub" / "up").symlink_to("..")
    (folder / "link.txt").symlink_to("sub/x.txt")
    with socket.socket(socket.AF_UNIX) as server:
        # The system limits the length of a socket's path.
        here = Path.cwd()
        os.chdir(folder)
        server.bind("socket")
        os.chdir(here)
        output = list_output(folder, FOREACH_OVERWRITE, None)
    assert [file.name for file in output.files] == ["link.txt", "sub/x.txt"]
    assert output.special == {
        "sub/pipe": "a named pipe",
        "device": "a device",
        "socket": "a socket",
        "nowhere": "a broken link",
        "itself": "a broken link",
        "aaa": "a link to a folder that is already read",
        "sub/up": "a link to a folder that is already read",
    }


def test_a_link_to_a_folder_elsewhere_is_followed(folder: Path, tmp_path: Path) -> None:
    write_part(tmp_path / "elsewhere", part(0))
    folder.mkdir(parents=True)
    (folder / "batch_id=3").symlink_to(tmp_path / "elsewhere")
    (file,) = list_output(folder, FOREACH_OVERWRITE, None).files
    assert (file.name, file.order) == (f"batch_id=3/{part(0)}", 3)


# --- Lines ---------------------------------------------------------------------------------------------


def places(path: Path, content: bytes, *, torn: bool = True) -> list[tuple[int, bytes]]:
    path.write_bytes(content)
    found = read_lines(Part(path, 0, len(content)), torn=torn)
    return [place for lines in found for place in zip(lines.positions, lines.digests, strict=True)]


def test_lines_keep_their_bytes_and_their_place(tmp_path: Path) -> None:
    file = tmp_path / "x"
    found = places(file, b"one\n\n\xff\r\nlast")
    whole = [(0, b"one"), (4, b""), (5, b"\xff\r")]
    assert found[:3] == [(position, line_digest(line)) for position, line in whole]
    # The last one is cut off: it is not the line that it would be with its end.
    assert found[3][0] == 8
    assert found[3][1] != line_digest(b"last")
    assert places(file, b"one\n\n\xff\r\nlast", torn=False) == found[:3]
    assert [line_at(file, position, 100) for position, _ in whole] == [Text(line, True, False) for _, line in whole]
    assert line_at(file, 8, 100) == Text(b"last", False, True)
    assert line_at(file, 8, 2) == Text(b"la", False, False)


@pytest.mark.parametrize("length", [CHUNK_BYTES - 1, CHUNK_BYTES, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1, 9 << 20])
def test_a_line_of_any_length_has_the_digest_of_its_bytes(tmp_path: Path, length: int) -> None:
    long = os.urandom(length).replace(b"\n", b" ")
    content = b"first\n" + long + b"\nlast\n"
    expected = [(0, line_digest(b"first")), (6, line_digest(long)), (7 + length, line_digest(b"last"))]
    assert places(tmp_path / "x", content) == expected
    torn = places(tmp_path / "x", content[: 6 + length])
    assert [position for position, _ in torn] == [0, 6]
    assert torn[1][1] != line_digest(long)
    assert places(tmp_path / "x", content[: 6 + length], torn=False) == expected[:1]


def test_a_line_of_any_length_takes_little_memory(tmp_path: Path) -> None:
    file, length = tmp_path / "x", 400 << 20
    with file.open("wb") as stream:
        # A hole: 400 MiB of zeros that take no room on the disk.
        stream.truncate(length)
        stream.seek(length)
        stream.write(b"\nlast\n")
    job = LinesJob((0,), (Part(file, 0, length + 6),), (False,))
    tracemalloc.start()
    rows = [row for batch in job.run() for row in batch.to_pylist()]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * LONG_BYTES
    assert [(row["line"], row["position"]) for row in rows] == [(1, 0), (2, length + 1)]
    hasher = blake2b(digest_size=16)
    for _ in range(400):
        hasher.update(bytes(1 << 20))
    hasher.update(b"\n")
    assert rows[0]["digest"].bytes == hasher.digest()


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_a_file_give_each_line_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = [b"x" * chance.choice([0, 0, 1, 3, 30, 200]) + b"%d" % number for number in range(chance.randrange(60))]
    content = b"\n".join([*lines, b""]) + chance.choice([b"", b"torn"])
    file = OutputFile("x", tmp_path / "x", len(content))
    whole = places(tmp_path / "x", content)
    for part_bytes in (1, 2, 7, 64, 1000):
        parts = [job.parts[0] for job in lines_jobs([file], part_bytes)]
        found = [
            place
            for part in parts
            for some in read_lines(part, torn=True)
            for place in zip(some.positions, some.digests, strict=True)
        ]
        assert found == whole


@pytest.mark.parametrize("parallel", [False, True])
def test_lines_are_loaded_with_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: bool) -> None:
    topic, batches = random_world(7)
    query = write_output(tmp_path, topic, batches)
    long = query.output / "long.txt"
    long.write_bytes(b"".join(b"%d\n" % number for number in range(5_000)))
    files = list_output(query.output, FILES, None).files
    if parallel:
        monkeypatch.setattr(reader, "_PARALLEL_BYTES", 0)
        # A default value is bound once, so the function itself is replaced.
        monkeypatch.setattr(reader, "lines_jobs", lambda files: lines_jobs(files, 9_000))
    with open_store(in_memory=True) as store:
        load_lines(store, files)
        found = store.rows("SELECT file, line, position, digest::VARCHAR, leftover FROM lines ORDER BY file, line")
    expected = []
    for number, file in enumerate(files):
        line, position = 1, 0
        for text in file.path.read_bytes().split(b"\n")[:-1]:
            hexadecimal = line_digest(text).hex()
            expected.append((number, line, position, hexadecimal, file.leftover))
            line, position = line + 1, position + len(text) + 1
    assert [(*row[:3], str(row[3]).replace("-", ""), row[4]) for row in found] == expected
    assert any(file.leftover for file in files)


def test_a_file_that_goes_away_is_judged_again(tmp_path: Path) -> None:
    with pytest.raises(Moved, match="was removed while the output was read"):
        list(read_lines(Part(tmp_path / "x", 0, 5), torn=True))
    (tmp_path / "x").mkdir()
    with pytest.raises(Unknown, match="cannot be read: Is a directory"):
        list(read_lines(Part(tmp_path / "x", 0, 5), torn=True))


# --- The checkpoint --------------------------------------------------------------------------------------


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
    os.utime(tmp_path / "commits" / "10", (1_767_225_600, 1_767_225_600))
    commit = newest_commit(tmp_path, "visits")
    assert commit is not None
    assert (commit.batch, commit.ends, commit.at) == (10, {0: 100, 1: 101}, "2026-01-01T00:00:00.000Z")


def test_no_checkpoint_is_no_commit(tmp_path: Path) -> None:
    assert newest_commit(tmp_path / "none", "visits") is None
    write_checkpoint(tmp_path, 0, '{"visits":{"0":1}}', committed=False)
    assert newest_commit(tmp_path, "visits") is None


@pytest.mark.parametrize(
    "ends", ["nonsense", '{"other":{"0":1}}', "[1]", "-", '{"visits":{"0":"x"}}', '{"visits":{"0":-1}}', "[" * 100_000]
)
def test_offsets_that_say_nothing_of_the_topic_are_unknown(tmp_path: Path, ends: str) -> None:
    write_checkpoint(tmp_path, 0, ends)
    with pytest.raises(Unknown, match="offsets/0"):
        newest_commit(tmp_path, "visits")


def test_a_commit_that_is_empty_or_has_no_offsets_is_unknown(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 0, '{"visits":{"0":1}}')
    (tmp_path / "commits" / "0").write_bytes(b"")
    with pytest.raises(Unknown, match="commits/0 is not a commit log"):
        newest_commit(tmp_path, "visits")
    write_checkpoint(tmp_path, 0, '{"visits":{"0":1}}')
    (tmp_path / "offsets" / "0").unlink()
    with pytest.raises(Unknown, match="cannot be read"):
        newest_commit(tmp_path, "visits")
