"""The patches in docs/changing_the_flink_job.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from faultline.settings import ROOT

_PAGE = ROOT / "docs" / "changing_the_flink_job.md"
_PATCH = re.compile(r"^## ([^\n]+)\n(?:(?!## )[^\n]*\n)*?```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def patches() -> dict[str, str]:
    """Each patch by its heading."""
    return dict(_PATCH.findall(_PAGE.read_text(encoding="utf-8")))


def apply(patch: str, folder: Path, *flags: str) -> str:
    """Apply a patch in a folder; returns git's error messages."""
    # Outside a repository, git apply takes any folder; inside one, it would skip files that it does not track.
    command = ["git", "-c", "core.autocrlf=false", "apply", *flags, "-"]
    done = subprocess.run(
        command, cwd=folder, input=patch, capture_output=True, text=True, check=False,
        env={"GIT_CEILING_DIRECTORIES": str(folder.parent), "PATH": "/usr/bin:/bin:/usr/local/bin"},
    )  # fmt: skip
    return done.stderr


def copy_of_the_job(folder: Path) -> Path:
    """Copy what the job's program and the programs around it import; returns the folder."""
    for name in ("faultline", "flink_job"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".env", folder)
    return folder
