"""Locations: readers of engines' data need the methods of Location and nothing else of a path on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any, Literal

import pytest

from faultline.formats.run import SINKS
from faultline.inspector.flink.folder import list_folders
from faultline.inspector.model import as_dict
from faultline.inspector.recognize import engine_of
from faultline.inspector.spark.report import read_report
from faultline.inspector.spark.state import list_operators
from faultline.probes.batches import newest_batches
from faultline.storage.__main__ import main
from faultline.storage.location import Location, Status
from faultline.storage.reading import names, read, size_below, walk
from faultline.verdict.spark.checkpoint import newest_commit
from faultline.verdict.spark.lines import Part, read_lines
from faultline.verdict.spark.output import list_output
from tests.golden.archives import golden

QUERIES = sorted(path.parent for path in golden("spark-4.0").glob("*/checkpoint"))


@dataclass(frozen=True, order=True)
class OnlyLocation:
    """Files on a disk by the methods of Location alone."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def parent(self) -> OnlyLocation:
        return OnlyLocation(self.path.parent)

    def __truediv__(self, key: str, /) -> OnlyLocation:
        return OnlyLocation(self.path / key)

    def exists(self) -> bool:
        return self.path.exists()

    def is_file(self) -> bool:
        return self.path.is_file()

    def is_dir(self) -> bool:
        return self.path.is_dir()

    def is_absolute(self) -> bool:
        return self.path.is_absolute()

    def absolute(self) -> OnlyLocation:
        return OnlyLocation(self.path.absolute())

    def resolve(self) -> OnlyLocation:
        return OnlyLocation(self.path.resolve())

    def relative_to(self, other: Any, /) -> PurePath:
        return self.path.relative_to(other.path)

    def as_uri(self) -> str:
        return self.path.as_uri()

    def iterdir(self) -> Iterator[OnlyLocation]:
        return map(OnlyLocation, self.path.iterdir())

    def glob(self, pattern: str) -> Iterator[OnlyLocation]:
        return map(OnlyLocation, self.path.glob(pattern))

    def rglob(self, pattern: str) -> Iterator[OnlyLocation]:
        return map(OnlyLocation, self.path.rglob(pattern))

    def stat(self) -> Status:
        return self.path.stat()

    def open(self, mode: Literal["rb"], /) -> BufferedReader:
        return self.path.open(mode)

    def read_bytes(self) -> bytes:
        return self.path.read_bytes()

    def read_text(self, encoding: str | None = None) -> str:
        return self.path.read_text(encoding)


def both(path: Path) -> tuple[Location, Location]:
    return path, OnlyLocation(path)


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.name)
def test_the_inspector_reads_any_place_like_a_path(query: Path) -> None:
    reports = []
    for folder in both(query):
        checkpoint = folder / "checkpoint"
        assert engine_of(checkpoint) == "spark"
        output = folder / "output"
        report = read_report(checkpoint, None, output if output.is_dir() else None)
        report.operators = list_operators(checkpoint, report.problems, report.notes)
        assert report.steps
        reports.append(as_dict(report))
    assert reports[0] == reports[1]


def test_flinks_folders_are_found_in_any_place() -> None:
    root = golden("flink-2.2")
    found = [[(str(each.path), each.size, each.reason) for each in list_folders(place)] for place in both(root)]
    assert found[0] == found[1]
    assert found[0]


def test_the_verdict_reads_any_place_like_a_path() -> None:
    folder = golden("spark-4.0") / "kafka_files"
    commits, outputs, lines = [], [], []
    for place in both(folder):
        commits.append(newest_commit(place / "checkpoint", "visits"))
        listed = list_output(place / "output", SINKS[0], None)
        outputs.append([(each.name, each.size, each.leftover, each.order) for each in listed.files])
        lines.append([list(read_lines(Part(each.path, 0, each.size), torn=True)) for each in listed.files])
    assert commits[0] is not None
    assert commits[0] == commits[1]
    assert outputs[0]
    assert outputs[0] == outputs[1]
    assert lines[0] == lines[1]


def test_the_newest_batches_are_read_from_any_place() -> None:
    checkpoint = golden("spark-4.0") / "kafka_killed" / "checkpoint"
    found = [newest_batches(place, checkpoint / "metadata") for place in both(checkpoint)]
    assert found[0]["batch"] == 2
    assert found[0] == found[1]


def test_small_reads_are_the_same_in_any_place(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "deep" / "_hidden").mkdir(parents=True)
    (tmp_path / "deep" / "b").write_bytes(b"de")
    (tmp_path / "deep" / "_hidden" / "c").write_bytes(b"f")
    for place in both(tmp_path):
        assert sorted(names(place)) == ["a"]
        assert read(place, "a") == b"abc"
        assert size_below(place) == 6
        assert walk(place, ("_",)).files == {"a": 3, "deep/b": 2}
        with pytest.raises(FileNotFoundError):
            read(place, "none")
        with pytest.raises(FileNotFoundError):
            names(place / "none")
        with pytest.raises(FileNotFoundError):
            walk(place / "none", ("_",))


def test_a_folder_is_listed_and_a_file_printed(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "chk-1").mkdir()
    (tmp_path / "chk-1" / "_metadata").write_bytes(b"\x00\xff\n")
    (tmp_path / "a file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    assert main([str(tmp_path)]) == 0
    assert capfdbinary.readouterr().out == b"           0  a file\n           3  chk-1/_metadata\na named pipe  pipe\n"
    assert main([(tmp_path / "chk-1" / "_metadata").as_uri()]) == 0
    assert capfdbinary.readouterr().out == b"\x00\xff\n"
    assert main([str(tmp_path / "none")]) == 1
    assert (
        capfdbinary.readouterr().err == f"files: {tmp_path}/none cannot be read: No such file or directory\n".encode()
    )
