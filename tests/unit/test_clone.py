"""A clone has the same bytes everywhere, also where git turns LF into CRLF and cannot make symbolic links."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from contract.settings import ROOT


def git(*arguments: str, folder: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def blobs(*arguments: str) -> dict[str, tuple[str, str]]:
    """Mode and blob id of each file that git names, in the format of ls-files --stage or ls-tree."""
    found = {}
    for line in git(*arguments, "-z").split("\0")[:-1]:
        description, _, name = line.partition("\t")
        mode, *middle = description.split()
        found[name] = (mode, middle[-1] if middle[0] == "blob" else middle[0])
    return found


def blob_id(path: Path) -> str:
    """The id that git would give to the bytes of a file, unchanged by any attribute."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def test_a_clone_on_windows_terms_has_every_byte_of_the_commit(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git("-c", "core.autocrlf=true", "-c", "core.symlinks=false", "clone", "--quiet", str(ROOT), str(clone))
    committed = blobs("ls-tree", "-r", "HEAD")
    assert committed
    different = [name for name, (_, blob) in committed.items() if blob_id(clone / name) != blob]
    assert different == []
    assert git("-c", "core.autocrlf=true", "status", "--porcelain", folder=clone) == ""


def test_no_tracked_file_is_a_symbolic_link() -> None:
    assert [name for name, (mode, _) in blobs("ls-files", "--stage").items() if mode == "120000"] == []


def test_every_program_has_its_executable_bit() -> None:
    """A program is a file with a `#!` line; what is sourced or imported has none."""
    for name, (mode, _) in blobs("ls-files", "--stage").items():
        path = ROOT / name
        if path.is_file() and path.read_bytes()[:2] == b"#!":
            assert mode == "100755", name
