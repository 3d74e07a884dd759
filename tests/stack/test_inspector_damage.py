"""Test that Spark does with a damaged checkpoint what the inspector says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
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
    "metadata-and-more",
    "commit-blank",
    "commit-version-and-blank",
    "entry-without-timestamp",
    "stray-snapshot",
    "state-of-no-batch",
    "repartition-begun",
    "source-log-gone",
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

    def remove(name: str) -> None:
        file = checkpoint / name
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def change(name: str, content: Callable[[bytes], bytes]) -> None:
        before = (checkpoint / name).read_bytes()
        remove(name)
        (checkpoint / name).write_bytes(content(before))

    match case:
        case "before-last-missing":
            remove(f"offsets/{last - 1}")
        case "last-truncated":
            change(f"offsets/{last}", lambda content: content[:60])
        case "metadata-missing":
            remove("metadata")
        case "metadata-cut":
            change("metadata", lambda content: content[:10])
        case "metadata-and-more":
            change("metadata", lambda content: content + b' {"id":')
        case "last-offsets-missing":
            remove(f"offsets/{last}")
        case "middle-commit-missing":
            remove("commits/5")
        case "last-commit-missing":
            remove(f"commits/{last}")
        case "commit-blank":
            change(f"commits/{last}", lambda _: b"v1\n\n")
        case "commit-version-and-blank":
            change(f"commits/{last}", lambda content: content.replace(b"v1", b"v1 ", 1))
        case "entry-without-timestamp":
            change(f"sources/0/{last - 1}", lambda content: re.sub(rb',"timestamp":\d+', b"", content))
        case "stray-snapshot":
            (checkpoint / "state" / "0" / "0" / "._13.snapshot").write_bytes(b"x")
        case "state-of-no-batch":
            for log in ("offsets", "commits"):
                shutil.rmtree(checkpoint / log)
                (checkpoint / log).mkdir()
        case "repartition-begun":
            remove(f"commits/{last}")
            change(f"offsets/{last}", lambda content: content.replace(b'partitions":"2"', b'partitions":"3"'))
        case "source-log-gone":
            shutil.rmtree(checkpoint / "sources")


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
