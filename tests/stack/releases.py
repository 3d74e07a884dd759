"""Environments of other releases of Spark, made when a test needs one, and the golden checkpoints that they start."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from faultline.inspector.model import Elsewhere, Restart
from faultline.inspector.spark.report import read_report
from faultline.packages.release import python_of
from faultline.settings import ROOT
from tests.called import process
from tests.golden.archives import golden

_LIMIT_SECONDS = 2300
_BATCH_SECONDS = 240.0
_MOST_ENDS = 5
RECORDER = ROOT / "tests" / "golden" / "record_spark_formats.py"
WHOLE = ("rocksdb", "state_ids", "offsets_v2", "named_sources", "named_sink", "async_progress", "files_windowed")
NAMED = ("named_sources", "named_sink")
"""Their query has methods that Spark has from 4.2 on: an older release starts the query without names."""

_ERRORS = {
    "this release cannot read ": "UnsupportedLogVersion",
    "needs offsets of version 2 for named sources": "STREAMING_QUERY_EVOLUTION_ERROR",
    "is missing beside offsets or commits": "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
    "starts, and it is missing": r"batch \d+ doesn't exist",
    "is there already": "CONCURRENT_STREAM_LOG_UPDATE",
    # Spark 3.5 shows no more of it in the first line, and of a function for each batch only that it failed.
    "makes its state": "CANNOT_LOAD_STATE_STORE|Job aborted due to stage failure|raised by the Python Proxy",
}
"""Words of Spark's error by the reason, as far as these tests have it: docs/spark_checkpoint_surgery.md, and the
conditions of Spark."""


class Prediction(NamedTuple):
    """The action and the batch of a restart; `error`: the pattern of Spark's error where it is impossible."""

    action: str
    step: int | None
    error: str = "|".join(_ERRORS.values())


def made_python(release: str) -> Path:
    """Return the interpreter of a release, after making its environment; both workers may ask at once."""
    python = python_of("spark", release)
    if python != Path(sys.executable):
        command = [sys.executable, "-m", "faultline.packages.release", "spark", release]
        subprocess.run(command, cwd=ROOT, check=True, timeout=_LIMIT_SECONDS)
    return python


def copies(written: str, release: str, folder: Path) -> dict[str, Path]:
    """Copy the golden checkpoints of one release that another one can start, by recipe."""
    found = {}
    for recipe in WHOLE:
        source = golden(f"spark-{written}") / recipe
        # An older release lacks the methods of the query; a file that it cannot read stops any query.
        name = "files_alone" if recipe in (*NAMED, "offsets_v2") and release < "4.2" else recipe
        two_sources = recipe == "named_sources" and written == "4.2" and name == "files_alone"
        if source.is_dir() and not two_sources:
            found[recipe] = Path(shutil.copytree(source, folder / f"{written}-{recipe}" / name))
    return found


def of_release(restart: Restart, release: str) -> Restart | Elsewhere:
    """Return the prediction for a release: its own, or one listed under other releases."""
    return next((each for each in restart.elsewhere if release in each.releases), restart)


def predicted(folder: Path, release: str) -> Prediction:
    """Return the restart that the report predicts with this release."""
    restart = read_report(folder / "checkpoint", None, None).restart
    assert restart is not None
    said = of_release(restart, release)
    if said.action != "impossible":
        return Prediction(said.action, said.step)
    errors = [error for reason, error in _ERRORS.items() if reason in said.sentence]
    assert len(errors) == 1, f"no error of Spark is known for: {said.sentence}"
    return Prediction(said.action, said.step, errors[0])


def restarted(
    python: Path, folders: Sequence[Path], seconds: float = _BATCH_SECONDS
) -> dict[Path, tuple[str, list[int]]]:
    """Start the query of each folder again, one after the other; its error, empty when there was none, and its commits.

    Each waits so many seconds for a batch. A damaged file can end the whole process, which is an error of its query.
    """
    outcomes: dict[Path, tuple[str, list[int]]] = {}
    ended = 0
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answers"
        while waiting := [folder for folder in folders if folder not in outcomes]:
            answer.write_text("")
            command = [str(python), str(RECORDER), "restart", str(answer), str(seconds), *map(str, waiting)]
            environ = {"PYTHONPATH": str(ROOT), "GOLDEN_SPARK_JARS": "", "SPARK_LOCAL_IP": "127.0.0.1"}
            done = process(command, environ, _LIMIT_SECONDS)
            for name, error, committed in map(json.loads, answer.read_text().splitlines()):
                outcomes[Path(name)] = error, committed
            if done.returncode != 0 and (left := [folder for folder in waiting if folder not in outcomes]):
                ended += 1
                # A process that gives no answer at all could not start; so many ends are no damage.
                assert outcomes and ended <= _MOST_ENDS, done.stderr[-3000:]
                outcomes[left[0]] = "the process of Spark ended", []
    return outcomes


def is_as_said(said: Prediction, error: str, committed: list[int]) -> bool:
    """Return whether a restart did what was predicted."""
    if said.action == "impossible":
        return re.search(said.error, error) is not None
    return not error and said.step in committed
