"""A session in a program that spark-submit has started, as Kubernetes does it: the submitter's settings win."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.settings import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

PROGRAM = """
import json
from faultline.settings import Settings
from spark_job.session import launch

ours = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.ui.retainedJobs": "7", "spark.app.name": "ours"}
spark = launch(ours, Settings(), {})
read = spark.sparkContext.getConf()
rows = spark.range(10).count()
names = ("spark.master", "spark.ui.retainedJobs", "spark.app.name", "spark.ui.retainedStages")
print(json.dumps({"rows": rows, **{name: read.get(name) for name in names}}))
spark.stop()
"""


def printed(tmp_path: Path, *command: str) -> dict[str, object]:
    """Return the JSON that the program prints when this command runs the program."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environ = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_the_submitters_settings_win_and_ours_fill_the_rest(tmp_path: Path) -> None:
    submit = str(Path(sys.executable).with_name("spark-submit"))
    flags = ["--master", "local[2]", "--name", "theirs", "--conf", "spark.ui.retainedStages=5"]
    assert printed(tmp_path, submit, *flags) == {
        "rows": 10, "spark.master": "local[2]", "spark.app.name": "theirs",
        "spark.ui.retainedStages": "5", "spark.ui.retainedJobs": "7",
    }  # fmt: skip


def test_a_program_that_starts_itself_has_its_own_settings_only(tmp_path: Path) -> None:
    assert printed(tmp_path, sys.executable) == {
        "rows": 10, "spark.master": "local[1]", "spark.app.name": "ours",
        "spark.ui.retainedStages": None, "spark.ui.retainedJobs": "7",
    }  # fmt: skip
