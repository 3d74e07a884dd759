"""The files of the project, where a pattern is in them, and the commands of its pages."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from faultline.settings import ROOT

_FENCE = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)


@functools.cache
def files() -> tuple[str, ...]:
    """Paths of all files below the project's folder that are not ignored, committed or not."""
    named = by_git if (ROOT / ".git").exists() else by_walking
    return tuple(name for name in named(ROOT) if (ROOT / name).is_file())


def by_git(folder: Path) -> list[str]:
    """List the files that git has, or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return sorted(set(listed.split("\0")) - {""})


def by_walking(folder: Path) -> list[str]:
    """All files that .gitignore leaves: an unpacked source archive has no git.

    Lines are read as git reads them, as far as this project's go: paths from the root, and names in any folder.
    """
    text = (folder / ".gitignore").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = []
    for place, folders, names in os.walk(folder):
        here = Path(place).relative_to(folder)
        folders[:] = [name for name in folders if name != ".git" and not _is_ignored(f"/{here / name}/", lines)]
        found += [str(here / name) for name in names if not _is_ignored(f"/{here / name}", lines)]
    return sorted(found)


def _is_ignored(path: str, lines: Iterable[str]) -> bool:
    """The last line that fits decides; `!` takes a path back."""
    ignored = False
    for line in lines:
        # A * of git stands for no empty name: `/checkpoints/*` leaves the folder itself.
        pattern = line.removeprefix("!").replace("*", "?*")
        if fnmatch(path, pattern if pattern.startswith("/") else f"*/{pattern}"):
            ignored = not line.startswith("!")
    return ignored


PAGES = [name for name in files() if name.endswith(".md")]
SCRIPTS = [name for name in files() if re.fullmatch(r"scripts/(walkthroughs/)?[^/]+\.sh", name)]


def text_of(name: str) -> str:
    """The text of a file; of one that is not text, with other characters for some bytes."""
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def places(pattern: re.Pattern[str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each match in a line of these files: `file:line`, and its group 1, or all of it if there is no group."""
    for name in names:
        text = text_of(name)
        lines = text.splitlines() if pattern.search(text) else []
        for number, line in enumerate(lines, 1):
            for found in pattern.finditer(line):
                yield f"{name}:{number}", found[min(pattern.groups, 1)]


def require_none(offenders: Iterable[str]) -> None:
    """Fail with every offender, each on its line."""
    if listed := list(offenders):
        pytest.fail("\n".join(listed), pytrace=False)


def commands(page: str) -> list[str]:
    """Command lines of the page's bash blocks, comments cut off."""
    lines = [line.split("  #")[0].strip() for block in _FENCE.findall(text_of(page)) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
