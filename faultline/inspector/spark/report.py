"""One Spark checkpoint as a Report, without a JVM."""

from __future__ import annotations

import json
from typing import Any

from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Report, Restart, Step
from faultline.inspector.spark.commits import Commits, read_commits
from faultline.inspector.spark.growth import read_growth
from faultline.inspector.spark.log import LogError, list_log
from faultline.inspector.spark.offsets import Offsets, PlannedBatch, read_all
from faultline.inspector.spark.releases import METADATA_NEEDED_SINCE, TRIED, formats, in_words, is_before, writers
from faultline.inspector.spark.restart import Logs, predict
from faultline.inspector.spark.sink import read_sink
from faultline.inspector.spark.sources import UNKNOWN, explain, initial_offset, kind_of
from faultline.inspector.spark.state_files import what_is_missing
from faultline.storage.place import Place

LOGS = ("offsets", "commits")
CUT = "is cut short or not JSON"


def is_spark_checkpoint(path: Place) -> bool:
    """Return whether the folder has one of the logs of a Structured Streaming query."""
    return any((path / name).is_dir() for name in LOGS)


def read_report(path: Place, last: int | None, output: Place | None) -> Report:
    """Read the checkpoint of one query; `last` limits the batches shown (None: all), all of them are checked.

    `output`: the folder of the file sink, which the checkpoint does not name.
    Raises InspectorError when a log folder cannot be listed.
    """
    report = Report("spark", "query", str(path))
    report.id, identity = _query_id(path, report.problems)
    try:
        # A running query plans and commits meanwhile: a commit counts only if it was there before the offsets were
        # listed, or belongs to one of them.
        earlier = set(list_log(path / "commits").numbers)
        listed = list_log(path / "offsets")
        committed_log = list_log(path / "commits")
        newest = listed.numbers[-1] if listed.numbers else -1
        committed_log.numbers[:] = [each for each in committed_log.numbers if each <= newest or each in earlier]
        offsets = read_all(listed)
        commits = read_commits(committed_log)
    except PermissionError as error:
        raise InspectorError(f"{error.filename} cannot be read: no permission; ask its owner") from None
    committed = set(committed_log.numbers)
    _say_what_is_wrong(report, path, offsets, commits)
    asynchronous = _is_asynchronous(listed.numbers, committed)
    if asynchronous:
        report.notes.append(
            "the logs have gaps, and always in both: asynchronous progress tracking writes them now and then, not for"
            " each batch"
        )
    report.problems += _gaps(path, listed.numbers, committed, asynchronous)
    initial = _initial(path, offsets.batches, report.problems)
    report.counts = {"batches": len(listed.numbers), "committed": len(committed & set(listed.numbers))}
    if listed.numbers:
        report.counts |= {"first": listed.numbers[0], "last": listed.numbers[-1]}
    for number in listed.numbers if last is None else listed.numbers[-last:]:
        step = _step(path, number, offsets, initial)
        step.state = step.state or ("committed" if number in committed else "planned")
        step.facts = commits.commits[number].facts() if number in commits.commits else {}
        report.steps.append(step)
    batch = offsets.batches[max(offsets.batches)] if offsets.batches else None
    report.configuration = batch.configuration if batch else {}
    report.formats, report.releases = formats(offsets, commits), writers(batch)
    if output is not None:
        report.sink = read_sink(output, committed, report.problems)
    report.growth = read_growth(path, offsets.batches, output)
    state = "" if asynchronous else _missing_state(path, listed.numbers, committed, report.problems)
    logs = Logs(path, offsets, commits, committed, initial, identity, state, asynchronous)
    report.restart = predict(logs, report.releases)
    report.problems += _backwards(path, report.restart)
    if report.restart.action == "re-run" and report.sink and report.restart.step in report.sink.batches:
        report.restart.details.append("the sink has this batch already and skips it: no line is written twice")
    return report


def _backwards(path: Place, restart: Restart) -> list[str]:
    """Ranges of the batch to re-run that end before they begin: their end is from a newer topic of the same name."""
    return [
        f"{path}/offsets/{restart.step} takes {each.topic} partition {each.partition} from {each.start} back to"
        f" {each.end}: the topic was created again; the batch fails, or with failOnDataLoss=false skips records"
        for each in restart.partitions
        if each.start is not None and each.end is not None and 0 <= each.end < each.start
    ]


def _missing_state(path: Place, planned: list[int], committed: set[int], problems: list[str]) -> str:
    """Say what the state that the next batch loads lacks, and make it a problem."""
    if not planned:
        return ""
    try:
        why = what_is_missing(path, planned[-1] + (planned[-1] in committed))
    except PermissionError as error:
        problems.append(f"{error.filename} cannot be read: no permission")
        return ""
    except FileNotFoundError:
        # A running query deleted an old folder or file meanwhile.
        return ""
    problems += [why] if why else []
    return why


def _say_what_is_wrong(report: Report, path: Place, offsets: Offsets, commits: Commits) -> None:
    """Damaged files are problems; files of a version that is not known here are notes."""
    for number, why in offsets.errors.items():
        report.problems.append(f"{path}/offsets/{number} cannot be read: {why}")
    for number, why in commits.errors.items():
        report.problems.append(f"{path}/commits/{number} cannot be read: {why}; Spark counts the batch by its file")
    for name, unknown in (("offsets", offsets.unknown), ("commits", commits.unknown)):
        for run in runs(sorted(unknown)):
            why = unknown[int(run.split()[0])]
            report.notes.append(f"{path}/{name}/{run} unknown: {why}")


def _is_asynchronous(planned: list[int], committed: set[int]) -> bool:
    """Return whether batches and their commits are missing, as asynchronous progress tracking leaves them out."""
    lacking = set(range(planned[0], planned[-1] + 1)) - set(planned) if planned else set()
    # The batches that it did write are committed; a single gap is more likely a file that was deleted.
    return bool(lacking) and not lacking & committed and len(runs(sorted(lacking))) > 1 and committed >= set(planned)


def _query_id(path: Place, problems: list[str]) -> tuple[str, str]:
    """The query's id, and whether its file is there, missing or damaged."""
    file = path / "metadata"
    try:
        return str(json.loads(file.read_bytes())["id"]), "there"
    except FileNotFoundError:
        problems.append(
            f"{file} is missing: {in_words(_before_needed())} give the query a new id and go on with these offsets,"
            f" Spark {METADATA_NEEDED_SINCE} and later refuse to start"
        )
        return "", "missing"
    except PermissionError:
        problems.append(f"{file} cannot be read: no permission")
    except (ValueError, KeyError, TypeError):
        problems.append(f"{file} {CUT}: a restart fails on it")
        return "", "damaged"
    return "", "there"


def _before_needed() -> list[str]:
    return [release for release in TRIED if is_before(release, METADATA_NEEDED_SINCE)]


def _gaps(path: Place, planned: list[int], committed: set[int], asynchronous: bool) -> list[str]:
    present = set(planned)
    lacking = sorted(set(range(planned[0], planned[-1] + 1)) - present) if planned and not asynchronous else []
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


def _initial(path: Place, batches: dict[int, PlannedBatch], problems: list[str]) -> dict[str, Any]:
    """The offsets that sources began with, by source: Kafka and rate keep them."""
    kinds: dict[str, str] = {}
    for batch in batches.values():
        kinds |= {name: kind_of(end) for name, end in batch.ends.items() if end is not None or name not in kinds}
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        try:
            found[name] = initial_offset(path, name, kind)
        except LogError as error:
            problems.append(f"{path}/sources/{name}/0 cannot be read: {error}")
    return found


def _step(path: Place, number: int, offsets: Offsets, initial: dict[str, Any]) -> Step:
    """One batch as its offsets file has it; its state is empty when the commit has to decide it."""
    step = Step(number, f"batch {number}", "", path=str(path))
    if number in offsets.errors:
        step.state, step.reason = "unreadable", offsets.errors[number]
    elif number in offsets.unknown:
        step.state, step.reason = "unknown", offsets.unknown[number]
    batch = offsets.batches.get(number)
    if batch is None:
        return step
    step.at, step.watermark = batch.planned_at, batch.watermark or None
    before = offsets.batches[number - 1].ends if number - 1 in offsets.batches else {}
    for name, end in batch.ends.items():
        start = before.get(name) if before else (UNKNOWN if number > 0 else None)
        # Only the first batch starts at the initial offset; an older start that was deleted is not known.
        first = initial.get(name) if number == 0 or kind_of(end) == "counter" else None
        step.sources.append(explain(path, name, start, end, first))
    return step
