"""faultline/faults/small_disk.sh keeps every file, also when it is interrupted or has no room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.faults.model import Need
from faultline.faults.needs import why_not
from faultline.settings import ROOT

SCRIPT = ROOT / "faultline" / "faults" / "small_disk.sh"
MIB = 1 << 20

pytestmark = pytest.mark.skipif(bool(why_not(Need.MOUNT)), reason=f"{why_not(Need.MOUNT)}")


def disk(action: str, folder: Path, *words: str) -> int:
    return subprocess.run([str(SCRIPT), action, str(folder), *words], capture_output=True, check=False).returncode


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with 3 MiB in two files."""
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    (folder / "a").write_bytes(os.urandom(2 * MIB))
    (folder / "below" / "b").write_bytes(os.urandom(MIB))
    yield folder
    while folder.is_mount():
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written_there_comes_back_with_all_that_was(folder: Path) -> None:
    before = content(folder)
    assert disk("mount", folder, "4") == 0
    assert folder.is_mount()
    assert content(folder) == before
    (folder / "new").write_text("new")
    assert disk("fill", folder) == 0
    with pytest.raises(OSError, match="No space left"):
        (folder / "more").write_bytes(bytes(MIB))
    (folder / "more").unlink(missing_ok=True)
    assert disk("free", folder) == 0
    assert disk("read-only", folder) == 0
    assert disk("unmount", folder) == 0
    assert content(folder) == {**before, "new": b"new"}
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_disk_that_is_too_small_changes_nothing(folder: Path) -> None:
    before = content(folder)
    assert disk("mount", folder, "-2") != 0
    assert not folder.is_mount()
    assert content(folder) == before
    assert disk("unmount", folder) != 0
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_an_interrupted_unmount_can_be_repeated(folder: Path) -> None:
    before = content(folder)
    assert disk("mount", folder, "4") == 0
    # As after a kill: a part is copied back, and the disk is still there.
    (folder.parent / "data.moved").mkdir()
    (folder.parent / "data.moved" / "a").write_text("cut short")
    assert disk("unmount", folder) == 0
    assert content(folder) == before
