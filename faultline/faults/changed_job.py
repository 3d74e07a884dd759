"""Submit a copy of the job that is wrong on purpose; runs where the JobManager does.

Usage: python -m faultline.faults.changed_job CHANGE [--restore]

A change whose text is not there exactly once is refused: the job is another one now, and the change has to follow.
Exit codes: 0 the job runs, 2 it does not; with --restore those of faultline.services.restore.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faultline.command import fail
from faultline.settings import ROOT

_COPIED = (".env", "faultline", "flink_job")
"""Everything that the job and its client import."""


@dataclass(frozen=True)
class Edit:
    """One text of a file of the project, and the text that replaces it."""

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        """Change the file in a copy of the project. Raises ValueError unless the old text is there exactly once."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times, and not once: {self.old}")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


_JOB, _GUARANTEES = "flink_job/stateful_flink_consumer.py", "flink_job/guarantees.py"
_WINDOWS = 'windows(settings.number("FLINK_WINDOW_SECONDS"))'
_OTHER_UID = Edit("flink_job/names.py", '"windows"),', '"windows-2"),')

CHANGES = {
    "drops-one-in-a-thousand": (
        Edit(_JOB, 'AND NOT is_late"""', 'AND NOT is_late AND MOD(source_offset, 1000) <> 7"""'),
    ),
    "writes-twice": (
        Edit(
            _JOB,
            f"add_insert_sql({_WINDOWS})",
            f'add_insert_sql({_WINDOWS} + " UNION ALL SELECT" + {_WINDOWS}.partition("SELECT")[2])',
        ),
    ),
    "starts-from-latest": (Edit(_GUARANTEES, '"earliest-offset"', '"latest-offset"'),),
    "reads-uncommitted": (Edit(_GUARANTEES, '"read_committed"', '"read_uncommitted"'),),
    "other-uid": (_OTHER_UID,),
    "other-uid-allowed": (
        _OTHER_UID,
        Edit("flink_job/submit.py", '"NO_CLAIM"', '"NO_CLAIM", "--allowNonRestoredState"'),
    ),
}
"""The changes by name."""


def submit(change: str, *, restores: bool) -> int:
    """Submit the changed copy, if `restores` from the newest checkpoint; returns the exit code of the client.

    Raises ValueError for a change that does not fit the job.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, copy / name)
        for edit in CHANGES[change]:
            edit.apply(copy)
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path[1:]])}
        submits = ["-m", "faultline.services.restore", "latest"] if restores else ["-m", "flink_job.submit"]
        return subprocess.run([sys.executable, *submits], cwd=copy, env=environ, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="faultline.faults.changed_job", description=__doc__, allow_abbrev=False)
    parser.add_argument("change", choices=CHANGES)
    parser.add_argument("--restore", action="store_true", help="continue from the newest checkpoint")
    chosen = parser.parse_args(arguments)
    try:
        return submit(chosen.change, restores=chosen.restore)
    except ValueError as error:
        return fail("changed_job", str(error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
