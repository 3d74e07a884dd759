"""Keep rows of a run of the fault matrix as recorded runs, which the page's tests and the docs play.

Usage: python -m tests.golden.record_runs FOLDER      then python -m faultline.page.pictures page

FOLDER: results/<time> of scripts/faults.sh, with the rows of NAMES. The stack's home in their texts becomes HOME, which
is the same on every machine.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.golden.archives import recorded

NAMES = ("taskmanager-kill", "sink-foreach-append")
HOME = "/tmp/faultline"
_FILES = ("result.json", "timeline.json", "verdict.json", "spark_before.txt", "spark_after.txt", "inspected/*/*.txt")


def keep(row: Path, home: Path, target: Path) -> None:
    """Copy what the page plays of a row. Raises FileNotFoundError when a file is missing."""
    shutil.rmtree(target, ignore_errors=True)
    for pattern in _FILES:
        files = sorted(row.glob(pattern))
        if not files:
            raise FileNotFoundError(f"{row} has no {pattern}")
        for file in files:
            kept = target / file.relative_to(row)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(file.read_text(encoding="utf-8").replace(str(home), HOME), encoding="utf-8")


def main() -> int:
    """Run the command line; returns the exit code."""
    folder = Path(sys.argv[1]).resolve()
    with recorded("runs") as runs:
        for name in NAMES:
            keep(folder / name, folder.parents[1], runs / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
