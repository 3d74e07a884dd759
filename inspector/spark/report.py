"""One Spark checkpoint as a Report, without a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.errors import InspectorError
from inspector.model import Report, Restart, Step
from inspector.spark.commits import read_commits
from inspector.spark.log import LogError, list_log
from inspector.spark.offsets import PlannedBatch, read_all
from inspector.spark.restart import predict
from inspector.spark.sink import read_sink
from inspector.spark.sources import UNKNOWN, explain, initial_offset

LOGS = ("offsets", "commits")
CUT = "is cut short or not JSON"


def is_spark_checkpoint(path: Path) -> bool:
    """Whether the folder has one of the logs of a Structured Streaming query."""
    return any((path / name).is_dir() for name in LOGS)


def read_report(path: Path, last: int | None, output: Path | None) -> Report:
    """Read the checkpoint of one query; `last` limits the batches shown (None: all), all of them are checked.

    `output`: the folder of the file sink, which the checkpoint does not name.
    Raises InspectorError when a log folder cannot be listed.
    """
    report = Report("spark", "query", str(path))
    report.id = _query_id(path, report.problems)
    try:
        # A running query plans and commits meanwhile: a commit counts that was there before the offsets were listed,
        # or that belongs to one of them.
        earlier = set(list_log(path / "commits").numbers)
        offsets = list_log(path / "offsets")
        commits = list_log(path / "commits")
        newest = offsets.numbers[-1] if offsets.numbers else -1
        commits.numbers[:] = [number for number in commits.numbers if number <= newest or number in earlier]
        batches, errors = read_all(offsets)
        _, commit_errors = read_commits(commits)
    except PermissionError as error:
        raise InspectorError(f"{error.filename} cannot be read: no permission; ask its owner") from None
    committed = set(commits.numbers)
    for number, why in errors.items():
        report.problems.append(f"{offsets.path}/{number} cannot be read: {why}")
    for number, why in commit_errors.items():
        report.problems.append(f"{commits.path}/{number} cannot be read: {why}; Spark counts the batch by its file")
    report.problems += _gaps(path, offsets.numbers, committed)
    initial = _initial(path, batches, report.problems)
    report.counts = {"batches": len(offsets.numbers), "committed": len(committed & set(offsets.numbers))}
    if offsets.numbers:
        report.counts |= {"first": offsets.numbers[0], "last": offsets.numbers[-1]}
    shown = offsets.numbers if last is None else offsets.numbers[-last:]
    for number in shown:
        if number in errors:
            step = Step(number, f"batch {number}", "unreadable", reason=errors[number], path=str(path))
        else:
            step = _step(path, number, batches, initial)
            step.state = "committed" if number in committed else "planned"
        report.steps.append(step)
    for batch in list(batches.values())[-1:]:
        report.configuration = batch.configuration
    if output is not None:
        report.sink = read_sink(output, committed, report.problems)
    report.restart = predict(path, batches, errors, committed, initial)
    if any(problem.startswith(f"{path / 'metadata'} {CUT}") for problem in report.problems):
        report.restart = Restart("impossible", None, f"A restart fails: Spark reads {path / 'metadata'} first of all")
    if report.restart.action == "re-run" and report.sink and report.restart.step in report.sink.batches:
        report.restart.details.append("the sink has this batch already and skips it: no line is written twice")
    return report


def _query_id(path: Path, problems: list[str]) -> str:
    file = path / "metadata"
    try:
        return str(json.loads(file.read_bytes())["id"])
    except FileNotFoundError:
        problems.append(f"{file} is missing: a restart gives the query a new id and goes on with these offsets")
    except PermissionError:
        problems.append(f"{file} cannot be read: no permission")
    except (ValueError, KeyError, TypeError):
        problems.append(f"{file} {CUT}: a restart fails on it")
    return ""


def _gaps(path: Path, planned: list[int], committed: set[int]) -> list[str]:
    present = set(planned)
    lacking = sorted(set(range(planned[0], planned[-1] + 1)) - present) if planned else []
    problems = [f"{path}/offsets/{run} missing: a gap between batches" for run in runs(lacking)]
    # Spark deletes old offsets before old commits, so a commit that is older than all offsets is no fault.
    orphans = sorted(number for number in committed - present if not planned or number > planned[0])
    problems += [
        f"{path}/commits/{run} there without offsets: commits of what was not planned" for run in runs(orphans)
    ]
    open_ones = [number for number in planned[:-1] if number not in committed]
    problems += [
        f"{path}/commits/{run} missing though later batches were planned:"
        " Spark re-runs the newest batch only, never these"
        for run in runs(open_ones)
    ]
    return problems


def runs(numbers: list[int]) -> list[str]:
    """`4 is`, `7 to 9 are`: ascending numbers, those in a row together."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return [f"{run[0]} is" if len(run) == 1 else f"{run[0]} to {run[-1]} are" for run in found]


def _initial(path: Path, batches: dict[int, PlannedBatch], problems: list[str]) -> list[Any]:
    found: list[Any] = []
    for source in range(max((len(batch.ends) for batch in batches.values()), default=0)):
        try:
            found.append(initial_offset(path, source))
        except LogError as error:
            problems.append(f"{path}/sources/{source}/0 cannot be read: {error}")
            found.append(None)
    return found


def _step(path: Path, number: int, batches: dict[int, PlannedBatch], initial: list[Any]) -> Step:
    step = Step(number, f"batch {number}", "planned", path=str(path))
    batch = batches[number]
    step.at, step.watermark = batch.planned_at, batch.watermark or None
    before = batches[number - 1].ends if number - 1 in batches else []
    for source, end in enumerate(batch.ends):
        start = before[source] if source < len(before) else (UNKNOWN if number > 0 and not before else None)
        # Only the first batch starts at the initial offset; an older start that was deleted is not known.
        first = initial[source] if number == 0 or (end is not None and not isinstance(end, dict)) else None
        step.sources.append(explain(path, source, start, end, first))
    return step
