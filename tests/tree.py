"""The files of the project, where a pattern is in them, and the commands of its pages."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from faultline.settings import ROOT

_FENCE = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)


@functools.cache
def files() -> tuple[str, ...]:
    """Paths of all files below the project's folder that are not ignored, committed or not."""
    return tuple(name for name in listed(ROOT) if (ROOT / name).is_file())


def listed(folder: Path) -> list[str]:
    """List the files that git has, or would add: an unpacked source archive has no repository."""
    with tempfile.TemporaryDirectory() as scratch:
        git = ["git"]
        if not (folder / ".git").exists():
            subprocess.run(["git", "init", "--quiet", "--bare", scratch], check=True)
            git = ["git", f"--git-dir={scratch}", f"--work-tree={folder}"]
        command = [*git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    return sorted(set(found.split("\0")) - {""})


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


def sentences_of(script: str) -> list[str]:
    """The sentences that a walkthrough proves, in order."""
    return re.findall(r'^ *prove "(.*)"$', text_of(script), re.MULTILINE)


def commands(page: str) -> list[str]:
    """Command lines of the page's bash blocks, comments cut off."""
    lines = [line.split("  #")[0].strip() for block in _FENCE.findall(text_of(page)) for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]
