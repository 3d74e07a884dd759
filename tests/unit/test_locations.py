"""Small reads of a location, and the program that lists and prints one. Types say what readers may ask of any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faultline.storage.__main__ import main
from faultline.storage.reading import names, read, size_below, walk


def test_small_reads(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "deep" / "_hidden").mkdir(parents=True)
    (tmp_path / "deep" / "b").write_bytes(b"de")
    (tmp_path / "deep" / "_hidden" / "c").write_bytes(b"f")
    assert sorted(names(tmp_path)) == ["a"]
    assert read(tmp_path, "a") == b"abc"
    assert size_below(tmp_path) == 6
    assert walk(tmp_path, ("_",)).files == {"a": 3, "deep/b": 2}
    with pytest.raises(FileNotFoundError):
        read(tmp_path, "none")
    with pytest.raises(FileNotFoundError):
        names(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        walk(tmp_path / "none", ("_",))


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
