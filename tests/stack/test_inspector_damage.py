"""Test that Spark does with a damaged checkpoint what the inspector says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.inspector.spark.report import read_report
from faultline.packages.release import THIS_RELEASE
from faultline.settings import ROOT
from tests.golden.archives import golden

pytestmark = [pytest.mark.full]

WRITTEN = golden(f"spark-{THIS_RELEASE}")
"""By the release that starts again here: another one may do something else."""
CASES = (
    "before-last-missing",
    "last-truncated",
    "metadata-missing",
    "middle-commit-missing",
    "last-commit-missing",
    "metadata-cut",
    "last-offsets-missing",
)

# Starts the same query on each copy in turn, and says how it ended and which batches it ran.
START = """
import json, sys
from pathlib import Path
from tests.golden.record_spark import files_windowed, session
spark = session()
results = {}
for folder in map(Path, sys.argv[2:]):
    committed = {path.name for path in (folder / "checkpoint/commits").iterdir()}
    try:
        files_windowed(spark, "", folder)
        results[folder.name] = ""
    except Exception as error:
        results[folder.name] = str(error).splitlines()[0]
Path(sys.argv[1]).write_text(json.dumps(results))
"""


def damage(checkpoint: Path, case: str) -> None:
    last = max(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdigit())

    def remove(folder: str, number: int) -> None:
        (checkpoint / folder / str(number)).unlink()
        (checkpoint / folder / f".{number}.crc").unlink(missing_ok=True)

    if case == "before-last-missing":
        remove("offsets", last - 1)
    elif case == "last-truncated":
        file = checkpoint / "offsets" / str(last)
        content = file.read_bytes()
        remove("offsets", last)
        file.write_bytes(content[:60])
    elif case == "metadata-missing":
        (checkpoint / "metadata").unlink()
        (checkpoint / ".metadata.crc").unlink(missing_ok=True)
    elif case == "metadata-cut":
        file = checkpoint / "metadata"
        content = file.read_bytes()
        (checkpoint / ".metadata.crc").unlink(missing_ok=True)
        file.write_bytes(content[:10])
    elif case == "last-offsets-missing":
        remove("offsets", last)
    elif case == "middle-commit-missing":
        remove("commits", 5)
    elif case == "last-commit-missing":
        remove("commits", last)


def started(answer: Path, *folders: Path) -> dict[str, str]:
    """Start the query of each folder with real Spark; returns its error by the folder's name, empty when it ran."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(answer), *map(str, folders)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    errors: dict[str, str] = json.loads(answer.read_text())
    return errors


def test_spark_does_what_the_inspector_says(tmp_path: Path) -> None:
    reports = {}
    for case in CASES:
        folder = Path(shutil.copytree(WRITTEN / "files_windowed", tmp_path / case))
        damage(folder / "checkpoint", case)
        reports[case] = read_report(folder / "checkpoint", None, folder / "output")
    errors = started(tmp_path / "answer.json", *(tmp_path / case for case in CASES))
    for case, report in reports.items():
        assert report.restart is not None
        # A wrong prediction fails with Spark's own words.
        assert (report.restart.action == "impossible") == bool(errors[case]), (case, errors[case])
        if not errors[case]:
            after = read_report(tmp_path / case / "checkpoint", None, None)
            state = {step.number: step.state for step in after.steps}
            assert report.restart.step in state
            assert state[report.restart.step] == "committed"
            assert ("commits/5" in "".join(after.problems)) == (case == "middle-commit-missing")
