"""The inspector says before a restore if a job can restore a checkpoint; Flink then carries it out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from faultline.formats.jobs import PROGRAMS
from faultline.inspector.against import DOES_NOT_MAP, MAPS
from faultline.settings import ROOT, Settings
from flink_job.rest import active_job
from tests.called import process
from tests.changed_job import apply, copy_of_the_job, patches
from tests.golden.archives import golden
from tests.stack.flink_cluster import Cluster, newest_checkpoint, send

pytestmark = pytest.mark.ci

CHECKPOINT = golden("flink-job")
"""Of the windowing job; the others are of a SQL job without uids."""
NAMES, PROGRAM = "flink_job/names.py", "flink_job/stateful_flink_consumer.py"


@dataclass(frozen=True)
class Variant:
    """The windowing job, changed: by settings, by a patch of the documentation, by replacing text in its files.

    `named`: the beginning of each reason that has to be given.
    """

    outcome: str
    named: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    patch: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()

    def written(self, folder: Path) -> Path:
        """Write the changed job into a folder."""
        copy = copy_of_the_job(folder)
        if self.patch:
            assert apply(patches()[self.patch], copy) == ""
        for name, before, after in self.edits:
            text = (copy / name).read_text(encoding="utf-8")
            assert before in text, f"{name} has no {before!r}"
            (copy / name).write_text(text.replace(before, after), encoding="utf-8")
        return copy


_WITHOUT_LATE = (
    (PROGRAM, "    inserts.add_insert_sql(late())\n", ""),
    (NAMES, '    "visits_late": Operator("visits_late", "visits_late-sink"),\n', ""),
)
VARIANTS = {
    "unchanged": Variant(MAPS),
    "another window size": Variant(MAPS, settings={"STACK_FLINK_WINDOW_SECONDS": "20"}),
    "more tasks": Variant(MAPS, settings={"STACK_FLINK_PARALLELISM": "2"}),
    "a lower maximum parallelism": Variant(
        DOES_NOT_MAP,
        ("the maximum parallelism is 128 in the checkpoint and set to 64",),
        {"STACK_FLINK_MAX_PARALLELISM": "64"},
    ),
    "another uid": Variant(
        DOES_NOT_MAP, ("windows: its state (",), edits=((NAMES, '"windows per visit_id", "windows"', '"w", "w2"'),)
    ),
    "a removed operator": Variant(DOES_NOT_MAP, ("visits_late-sink: its state (",), edits=_WITHOUT_LATE),
    "another aggregate": Variant(DOES_NOT_MAP, ("windows: its state cannot be opened",), patch="Another aggregate"),
    "another key": Variant(MAPS, patch="Another key"),
    "sliding windows": Variant(MAPS, patch="Sliding windows"),
}

CI = ("unchanged", "another aggregate")
"""The others are compared in the tier full only, and carried out there, too."""


def said(checkpoint: Path, environment: dict[str, str], job: str = "windows") -> dict[str, Any]:
    """Return the JSON of `inspect --against`, with the exit code checked against its outcome."""
    done = subprocess.run(
        [sys.executable, "-m", "faultline.inspector", str(checkpoint), "--against", job, "--json"],
        cwd=environment["PYTHONPATH"], env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == {MAPS: 0, DOES_NOT_MAP: 1}[document["outcome"]], done.stderr
    return document


def require(found: dict[str, Any], variant: Variant) -> None:
    """Check the outcome, and that each reason is given by name."""
    assert found["outcome"] == variant.outcome, found
    for words in variant.named:
        assert any(reason.startswith(words) for reason in found["refused"]), found
    assert not found["unknown"], found


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.ci if name in CI else pytest.mark.full) for name in VARIANTS]
)
def test_a_changed_job_against_a_recorded_checkpoint(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    copy = variant.written(tmp_path / "changed")
    environment = os.environ | variant.settings | {"PYTHONPATH": str(copy), "STACK_HOME": str(tmp_path)}
    found = said(CHECKPOINT, environment)
    require(found, variant)
    if variant.outcome == MAPS:
        assert {"visits-source", "late-or-on-time", "windows", "visit_windows-sink"} <= set(found["mapped"])
    assert not (tmp_path / "checkpoints").exists(), "planning a job must not leave anything"


@pytest.mark.full
def test_a_program_by_its_file_with_arguments(tmp_path: Path) -> None:
    program = PROGRAMS["windows"]
    done = inspect(CHECKPOINT, "--against", str(program), "--", "--mode", "at-least-once", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{program} can restore " in done.stdout
    done = inspect(CHECKPOINT, "--against", str(program), "--", "--mode", "twice", home=tmp_path)
    assert done.returncode == 2
    assert "failed before it submitted its job" in done.stderr


@pytest.mark.full
def test_a_checkpoint_that_the_job_deletes_meanwhile_is_still_compared(tmp_path: Path) -> None:
    checkpoint = Path(shutil.copytree(next(CHECKPOINT.glob("*/chk-*")), tmp_path / "chk-7"))
    program = tmp_path / "program.py"
    program.write_text(
        "import runpy, shutil\n"
        f"shutil.rmtree({str(checkpoint)!r})\n"
        f"runpy.run_path({str(PROGRAMS['windows'])!r}, run_name='__main__')\n"
    )
    done = inspect(checkpoint, "--against", str(program), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not checkpoint.exists()
    assert f"can restore {checkpoint}" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("place", "code", "words"),
    [
        ("same-operator", 1, "refused: windows: its state cannot be opened"),
        ("other-uid", 1, "refused: windows: its state ("),
        ("own-operator", 0, "begins without state: pages"),
    ],
)
def test_one_more_aggregate_in_each_place(tmp_path: Path, place: str, code: int, words: str) -> None:
    program = ROOT / "flink_job" / "one_more_aggregate.py"
    done = inspect(CHECKPOINT, "--against", str(program), "--", "--place", place, home=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stdout


def test_a_job_of_other_operators(tmp_path: Path) -> None:
    done = inspect(CHECKPOINT, "--against", "classic", home=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "refused: windows: its state (" in done.stdout
    assert "would drop the state of: " in done.stdout


def test_what_cannot_be_said(tmp_path: Path) -> None:
    ends = tmp_path / "ends.py"
    ends.write_text("print('no job')\n")
    for path, job, words in (
        (CHECKPOINT, str(ends), "ended without submitting a job"),
        (CHECKPOINT, "nothing", "neither a job of this project"),
        (golden("spark-4.0") / "kafka_killed" / "checkpoint", "windows", "is of Spark"),
        (tmp_path, "windows", "is not a checkpoint"),
    ):
        done = inspect(path, "--against", job, home=tmp_path)
        assert done.returncode == 2, done.stdout
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def inspect(path: Path, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "faultline.inspector", str(path), *arguments]
    return process(command, {"STACK_HOME": str(home)}, seconds=900)


def is_restored(cluster: Cluster, checkpoint: str) -> bool:
    """Submit the job from a checkpoint; whether it came to run. It does not run afterwards."""
    done = cluster.module("flink_job.submit", "--from", checkpoint)
    if done.returncode == 0:
        assert cluster.module("flink_job.cancel").returncode == 0
    # A refusal leaves no job behind.
    assert active_job(cluster.rest, Settings(cluster.environment).text("FLINK_JOB_NAME")) is None
    return done.returncode == 0


@pytest.mark.full
def test_flink_does_what_was_said(cluster: Cluster, tmp_path: Path) -> None:
    """Each change is restored by a real cluster: it runs or is refused, as was said."""
    send(cluster, 0, range(25))
    send(cluster, 1, range(25))
    job = cluster.submit()
    cluster.drain(job)
    checkpoint = newest_checkpoint(cluster, job)
    assert cluster.module("flink_job.cancel").returncode == 0
    own = dict(cluster.environment)
    for name, variant in VARIANTS.items():
        copy = variant.written(tmp_path / name.replace(" ", "-"))
        cluster.environment = own | variant.settings | {"PYTHONPATH": str(copy)}
        require(said(Path(checkpoint), cluster.environment), variant)
        assert is_restored(cluster, checkpoint) == (variant.outcome == MAPS), name


@pytest.mark.full
def test_a_checkpoint_of_a_job_that_was_restored_itself(cluster: Cluster) -> None:
    """Its sinks' writers have a state more than those of a job that began without a checkpoint."""
    send(cluster, 0, range(25))
    send(cluster, 1, range(25))
    job = cluster.submit()
    cluster.wait_for_checkpoints(job, 2)
    checkpoint = newest_checkpoint(cluster, job)
    assert cluster.module("flink_job.cancel").returncode == 0
    job = cluster.submit("--from", checkpoint)
    cluster.wait_for_checkpoints(job, 2)
    checkpoint = newest_checkpoint(cluster, job)
    # A running job deletes old checkpoints.
    assert cluster.module("flink_job.cancel").returncode == 0
    found = said(Path(checkpoint), cluster.environment)
    assert found["outcome"] == MAPS, json.dumps(found, indent=1)


@pytest.mark.full
def test_the_classic_job(cluster: Cluster) -> None:
    """Its Python functions keep what only they know; the rest is compared."""
    send(cluster, 0, range(25))
    send(cluster, 1, range(25))
    job = cluster.submit("--job", "classic")
    cluster.wait_for_checkpoints(job, 2)
    checkpoint = newest_checkpoint(cluster, job)
    assert cluster.module("flink_job.cancel", "--job", "classic").returncode == 0
    found = said(Path(checkpoint), cluster.environment, "classic")
    assert found["outcome"] == MAPS, found
    assert found["not_compared"]
    done = cluster.module("flink_job.submit", "--job", "classic", "--from", checkpoint)
    assert done.returncode == 0, done.stderr
