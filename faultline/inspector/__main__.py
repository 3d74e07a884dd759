"""Open a Spark or Flink checkpoint and say what is in it and what a restart from it does.

Usage:
    python -m faultline.inspector PATH [--json | --format prose|table] [--bootstrap HOST:PORT] [--state] [--all]
        [--follow]
    python -m faultline.inspector PATH --state [--operator NAME] [--limit N] [--csv | --json]
    python -m faultline.inspector --diff PATH OTHER_PATH [--json] [--state [--operator NAME] [--limit N] [--csv]]
    python -m faultline.inspector PATH --against windows|classic|FILE.py [--json] [-- ARGUMENT...]
    python -m faultline.inspector PATH --garbage [--json] [--sink DIR]

Runs in the tools environment, where Flink's part is a process of the Flink environment; for Flink's checkpoints
alone also in the Flink environment.
Exit codes: 0 read, 1 a problem was found, or a restart fails (what can be read is still shown), 2 wrong usage; with
--against: 0 the job can restore it, 1 it cannot, 2 it cannot be said.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec

from faultline.command import CommandError, quiet_imports
from faultline.command import run as run_program

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.arguments import NEEDS_FLINK, inspector_arguments
from faultline.inspector import garbage
from faultline.inspector.against import EXIT_CODES, render, render_json
from faultline.inspector.diff import compare
from faultline.inspector.ends import add_lag
from faultline.inspector.errors import InspectorError, reading
from faultline.inspector.flink.garbage import find_garbage as flink_garbage
from faultline.inspector.held_back import add_fates
from faultline.inspector.model import Report, as_dict
from faultline.inspector.reading import (
    flink_comparison,
    flink_python,
    flink_reports,
    sink_folder,
    spark_report,
    state_rows,
)
from faultline.inspector.recognize import engine_of
from faultline.inspector.render import prose
from faultline.inspector.rows import compare as compare_rows
from faultline.inspector.rows import documents, write_changes_csv, write_csv
from faultline.inspector.rows import render as render_changes
from faultline.inspector.spark.garbage import find_garbage as spark_garbage
from faultline.settings import ROOT, Settings
from faultline.storage.data import flink_checkpoints
from faultline.storage.location import Location
from faultline.storage.words import location_argument

FOLLOW_SECONDS = 0.5
"""Seconds between two looks at a Spark checkpoint that is followed."""


def reports(arguments: argparse.Namespace, settings: Settings) -> Iterator[Report]:
    """Yield one report per path; with --follow, reports without end."""
    engines = [engine_of(path) for path in arguments.path]
    if set(engines) == {"flink"}:
        yield from flink_reports(arguments.path, arguments.rows, arguments.follow, arguments.state)
        return
    for path, engine in zip(arguments.path, engines, strict=True):
        if engine == "flink":
            yield from flink_reports([path], arguments.rows, False, arguments.state)
            continue
        while True:
            yield spark_report(path, arguments, settings)
            if not arguments.follow:
                break
            time.sleep(FOLLOW_SECONDS)


def of_operator(report: Report, operator: str | None) -> Report:
    """Leave out the other operators. Raises InspectorError when the report has no such operator."""
    if operator is None:
        return report
    chosen = [each for each in report.operators if operator in (each.uid, each.name, each.id)]
    if not chosen:
        there = ", ".join(each.label for each in report.operators if each.state_bytes)
        raise InspectorError(f"{report.path} has no operator {operator}; those with state: {there or 'none'}")
    report.operators = chosen
    return report


def can_read(paths: list[Location]) -> bool:
    """Return whether this environment has what the paths need: Flink's files need Flink's classes."""
    try:
        engines = [engine_of(path) for path in paths]
    except InspectorError:
        # A path that is not a checkpoint can be refused anywhere.
        return True
    return "flink" not in engines or flink_python().exists()


def with_lag(report: Report, arguments: argparse.Namespace, settings: Settings) -> Report:
    """Compare the restart with the topics' ends; a default broker that does not answer is a note, not a problem."""
    if arguments.no_lag:
        return report
    try:
        add_lag(report, arguments.bootstrap or settings.bootstrap)
        if find_spec("kafka"):
            here, ours = (str(each.resolve()) for each in (location_argument(report.path), flink_checkpoints(settings)))
            is_own = bool(arguments.bootstrap) or f"{here}/".startswith(f"{ours}/")
            add_fates(report, arguments.bootstrap or settings.bootstrap, is_own=is_own)
    except InspectorError as error:
        (report.problems if arguments.bootstrap else report.notes).append(str(error))
    return report


def show(report: Report, arguments: argparse.Namespace) -> None:
    """Print one report in the format that was asked for, or that fits the output."""
    if arguments.json:
        print(json.dumps(as_dict(report), indent=2))
        return
    wants_table = arguments.format == "table" or (arguments.format is None and sys.stdout.isatty())
    if wants_table and find_spec("rich"):
        from rich.console import Console  # noqa: PLC0415 - costs as much as reading a checkpoint

        from faultline.inspector.render import table  # noqa: PLC0415

        table.render(report, Console())
        return
    print(prose.render(report))


def follow(found: Iterator[Report], arguments: argparse.Namespace) -> None:
    """Print each batch or checkpoint when it is new or its state has changed."""
    seen: dict[str, str] = {}
    for report in found:
        for step in report.steps:
            if seen.get(step.path + step.name) == step.state:
                continue
            seen[step.path + step.name] = step.state
            if arguments.json:
                single = Report(report.engine, report.kind, report.path, report.id, steps=[step])
                print(json.dumps(as_dict(single)), flush=True)
            else:
                print(prose.step_line(report, step), flush=True)


def show_diff(before: Report, after: Report, as_json: bool) -> None:
    """Print what changed between two reports."""
    differences = compare(before, after)
    if as_json:
        print(json.dumps([vars(difference) for difference in differences], indent=2))
        return
    print(f"from {before.path} to {after.path}:")
    for difference in differences:
        print(f"  {difference.sentence()}")
    if not differences:
        print("  no figure differs")


def show_rows(arguments: argparse.Namespace) -> None:
    """Print the state of one checkpoint as CSV, or what changed in it to another one, by key."""
    engines = {engine_of(path) for path in arguments.path}
    if len(engines) > 1:
        raise InspectorError(
            "one of the two checkpoints is of Spark and one of Flink: their states have no key in common"
        )
    (engine,) = engines
    if not arguments.diff:
        write_csv(state_rows(arguments.path[0], engine, arguments.operator, arguments.limit), sys.stdout)
        return
    before, after = (state_rows(path, engine, arguments.operator, None) for path in arguments.path)
    differences = compare_rows(before, after)
    if arguments.csv:
        write_changes_csv(differences, arguments.limit, sys.stdout)
    elif arguments.json:
        print(json.dumps(list(documents(differences, arguments.limit)), indent=2))
    else:
        print(f"state, from {arguments.path[0]} to {arguments.path[1]}:")
        print(render_changes(differences, arguments.rows))


def show_comparison(arguments: argparse.Namespace) -> int:
    """Print whether a job can restore a checkpoint; returns the exit code. Raises CommandError."""
    try:
        if engine_of(arguments.path[0]) != "flink":
            raise InspectorError(f"{arguments.path[0]} is of Spark; --against plans Flink jobs")
        comparison = flink_comparison(arguments.path[0], arguments.against, arguments.program)
    except InspectorError as error:
        raise CommandError(str(error)) from None
    print(render_json(comparison) if arguments.json else render(comparison))
    return EXIT_CODES[comparison.outcome]


def show_garbage(path: Location, arguments: argparse.Namespace, settings: Settings) -> int:
    """Print the files that nothing needs; returns the exit code."""
    if engine_of(path) == "flink":
        found = flink_garbage(path)
    else:
        found = spark_garbage(path, sink_folder(path, arguments.sink, settings))
    if arguments.outside:
        garbage.outside(found, str(ROOT), arguments.outside)
    print(garbage.render_json(found) if arguments.json else garbage.render(found))
    return 1 if found.problems else 0


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for; returns the exit code."""
    if arguments.without_flink and not can_read(arguments.path):
        return NEEDS_FLINK
    if arguments.against:
        return show_comparison(arguments)
    if arguments.state and (arguments.csv or arguments.diff):
        show_rows(arguments)
        return 0
    settings = Settings()
    if arguments.garbage:
        return show_garbage(arguments.path[0], arguments, settings)
    found = (of_operator(report, arguments.operator) for report in reports(arguments, settings))
    if arguments.follow:
        with contextlib.suppress(KeyboardInterrupt):
            follow(found, arguments)
        return 0
    read = list(found)
    if arguments.diff:
        if len(read) != 2:
            raise InspectorError(f"a difference needs two checkpoints, {len(read)} could be read")
        show_diff(read[0], read[1], arguments.json)
    else:
        for report in read:
            show(with_lag(report, arguments, settings), arguments)
    return 1 if any(is_a_problem(report) for report in read) else 0


def is_a_problem(report: Report) -> bool:
    """Return whether something is wrong: a problem was found, or the prediction is that a restart fails."""
    return bool(report.problems) or (report.restart is not None and report.restart.action == "impossible")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code. Raises InspectorError and SettingsError."""
    arguments = inspector_arguments(sys.argv[1:] if argv is None else argv, location_argument)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a checkpoint holds may be text that no encoding has, such as half of a surrogate pair.
            stream.reconfigure(errors="backslashreplace")
    with reading("the checkpoint"):
        return run(arguments)


if __name__ == "__main__":
    run_program("inspect", main)
