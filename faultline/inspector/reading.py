"""Readers that make reports: Spark's files are read here, Flink's by a process in the Flink environment."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from faultline.inspector.against import Comparison, comparison_from
from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Report, report_from
from faultline.inspector.spark.report import read_report
from faultline.inspector.spark.state import list_operators, read_state, spark_rows
from faultline.settings import ROOT, Settings, artifacts
from faultline.storage.data import spark_checkpoints, spark_outputs
from faultline.storage.location import Location


def flink_python() -> Path:
    """Return the interpreter for Flink's part: this one where it has PyFlink, else that of the Flink environment."""
    if find_spec("pyflink"):
        return Path(sys.executable)
    return artifacts() / "venv-flink" / "bin" / "python"


def _flink_lines(*words: str) -> Iterator[str]:
    """Yield what `python -m faultline.inspector.flink WORD...` prints. Raises InspectorError when it fails."""
    python = flink_python()
    if not python.exists():
        raise InspectorError(
            f"{python} is missing: Flink's files are read by Flink's own classes; run scripts/up.sh once"
        )
    packages = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Its messages are already sentences and go to the same place as ours.
    with subprocess.Popen(
        [str(python), "-m", "faultline.inspector.flink", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": packages},
    ) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode == -signal.SIGKILL:
        raise InspectorError(
            "the program that reads Flink's files was killed, as a system does when its memory is used up; read the "
            "checkpoint where more is free"
        )
    if process.returncode != 0:
        raise InspectorError(f"reading Flink's files ended with exit code {process.returncode}")


def flink_reports(paths: Sequence[Location], rows: int, follow: bool, state: bool = False) -> Iterator[Report]:
    """Yield the reports that the Flink environment prints; `state`: with entries of all states.

    Raises InspectorError when it fails.
    """
    flags = [f"--rows={rows}", *(["--follow"] if follow else []), *(["--state"] if state else [])]
    for line in _flink_lines("describe", *flags, *map(str, paths)):
        yield report_from(json.loads(line))


def state_rows(path: Location, engine: str, operator: str | None, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield the state of a checkpoint, at most `limit` rows of each state, of one operator or of all.

    Raises InspectorError when it cannot be read, or has no such operator.
    """
    if engine == "spark":
        yield from spark_rows(path, operator, limit)
        return
    flags = [f"--{name}={value}" for name, value in (("operator", operator), ("limit", limit)) if value is not None]
    yield from map(json.loads, _flink_lines("rows", *flags, str(path)))


def flink_comparison(path: Location, job: str, arguments: Sequence[str]) -> Comparison:
    """Set a checkpoint against a job that the Flink environment plans. Raises InspectorError when it fails."""
    (line,) = _flink_lines("against", str(path), job, *arguments)
    return comparison_from(json.loads(line))


def sink_folder(path: Location, chosen: Location | None, settings: Settings) -> Location | None:
    """Return the file sink's folder: the one given, or the stack's own for a query of the stack."""
    if chosen is not None:
        return chosen
    if path.resolve().parent == spark_checkpoints(settings):
        return spark_outputs(settings) / path.resolve().name
    return None


def spark_report(path: Location, arguments: argparse.Namespace, settings: Settings) -> Report:
    """Read a Spark checkpoint; with --state, its state rows by Spark itself."""
    last = None if arguments.all else arguments.last
    report = read_report(path, last, sink_folder(path, arguments.sink, settings))
    try:
        report.operators = list_operators(path, report.problems, report.notes)
        if arguments.state and report.operators:
            for operator, read in zip(report.operators, read_state(path, arguments.rows), strict=True):
                operator.state, operator.name = read.state, read.name
    except InspectorError as error:
        report.problems.append(str(error))
    return report
