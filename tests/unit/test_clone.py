"""A clone has the same bytes everywhere, also where git turns LF into CRLF and cannot make symbolic links."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.tree import SCRIPTS, files, require_none


def git(*arguments: str, folder: Path = ROOT, given: str = "") -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive has no commit to clone")
def test_a_clone_on_windows_terms_has_every_byte_of_the_commit(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git("-c", "core.autocrlf=true", "-c", "core.symlinks=false", "clone", "--quiet", str(ROOT), str(clone))
    listed = [line.split("\t") for line in git("ls-tree", "-r", "HEAD").splitlines()]
    committed = {name: description.split()[2] for description, name in listed}
    # The ids of the bytes as they are, unchanged by any attribute.
    ids = git("hash-object", "--no-filters", "--stdin-paths", folder=clone, given="\n".join(committed)).split()
    require_none(name for name, found in zip(committed, ids, strict=True) if found != committed[name])
    assert git("-c", "core.autocrlf=true", "status", "--porcelain", folder=clone) == ""


def test_no_file_is_a_symbolic_link() -> None:
    require_none(name for name in files() if (ROOT / name).is_symlink())


def test_every_program_has_its_executable_bit() -> None:
    """A program is a file with a `#!` line; what is sourced or imported has none."""
    programs = [name for name in files() if (ROOT / name).read_bytes()[:2] == b"#!"]
    assert set(SCRIPTS) < set(programs)
    require_none(name for name in programs if not os.access(ROOT / name, os.X_OK))
