"""One Flink checkpoint, savepoint or folder of them as a Report."""

from __future__ import annotations

from typing import Any

from faultline.inspector.errors import InspectorError, UnknownFormat
from faultline.inspector.flink.folder import METADATA, CheckpointFolder, is_checkpoint_folder, list_folders, read_folder
from faultline.inspector.flink.metadata import (
    Entry,
    in_flight_bytes,
    load_metadata,
    missing_files,
    operators,
    state_files,
)
from faultline.inspector.flink.offsets import (
    READER_STATE,
    Offsets,
    list_longs,
    list_pairs,
    source_offsets,
    state_names,
)
from faultline.inspector.flink.restart import partitions_of, predict
from faultline.inspector.flink.sink import COMMITTER_STATE, WRITER_STATE, prepared, transactional_writers
from faultline.inspector.flink.state import keyed_state
from faultline.inspector.growth import MINIMUM, bytes_per_day
from faultline.inspector.model import Growth, Operator, Report, Restart, SourceRange, StateStore, Step
from faultline.inspector.words import count, positions, size_words, time_words
from faultline.storage.place import Place

WATERMARK_STATE = "watermark"
"""Union list state in which the table runtime's window operators keep their watermark."""
CLOCK_STATE = "partition-clocks"
"""Union list state in which this project's job keeps the clock of each Kafka partition (OnTime.java)."""
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once (transactions)", "at-least-once (no transactions)"
SOURCE, STATE, SINK = range(3)
"""The order in which operators are shown; Flink's own is that of a hash table."""


def step_of(folder: CheckpointFolder) -> Step:
    """Return what is known of one folder without a JVM."""
    return Step(
        number=folder.number,
        name=folder.name,
        state="complete" if folder.complete else "incomplete",
        at=round((folder.completed_at or folder.changed_at) * 1000),
        reason=folder.reason,
        size=folder.size,
        path=str(folder.path),
    )


def folder_report(path: Place) -> tuple[Report, list[Place]]:
    """Report a path without a JVM, and what to open: the path itself, or the checkpoints below it, newest first.

    Raises InspectorError when the path is neither a checkpoint nor a folder of checkpoints.
    """
    path = path.parent if path.name == METADATA else path
    if is_checkpoint_folder(path):
        folder = read_folder(path)
        if folder is None:
            raise InspectorError(f"{path} went away while it was read: the job deleted it; choose a newer one")
        report = Report("flink", "savepoint" if folder.is_savepoint else "checkpoint", str(path))
        report.steps = [step_of(folder)]
        report.counts = _later(folder)
        if not folder.complete:
            report.problems.append(f"{path} cannot be restored: {folder.reason}")
            report.restart = Restart("impossible", None, f"A restore from {folder.name} fails: {folder.reason}")
            return report, []
        return report, [path]
    closed: list[str] = []
    folders = list_folders(path, closed)
    if not folders and closed:
        raise InspectorError(closed[0])
    if not folders:
        raise InspectorError(f"{path} holds no chk-N and no savepoint: not a checkpoint folder of Flink, or empty")
    report = Report("flink", "folder", str(path))
    report.problems += closed + [folder.closed for folder in folders if folder.closed]
    report.steps = [step_of(folder) for folder in folders]
    complete = [folder.path for folder in folders if folder.complete]
    report.growth = _growth(folders)
    report.counts = {"folders": len(folders), "complete": len(complete)}
    if not complete:
        report.problems.append(f"{path}: nothing in its {count(len(folders), 'folder')} can be restored")
        report.restart = Restart("impossible", None, "Nothing here can be restored; a job starts from the beginning")
    return report, complete[::-1]


def _growth(folders: list[CheckpointFolder]) -> list[Growth]:
    """Growth of the newest run's checkpoints; none of those that share files, whose own sizes say nothing."""
    checkpoints = [each for each in folders if each.complete and not each.is_savepoint]
    run = [each for each in checkpoints if each.path.parent == checkpoints[-1].path.parent]
    if not run or any((run[-1].path.parent / "shared").glob("*")):
        return []
    sizes = [(round((each.completed_at or 0) * 1000), each.size) for each in run]
    span = sizes[-1][0] - sizes[0][0]
    if len(sizes) < MINIMUM or span <= 0:
        return []
    return [Growth(f"checkpoints {run[0].name} to {run[-1].name}", run[-1].size, bytes_per_day(sizes), span)]


def _later(folder: CheckpointFolder) -> dict[str, int]:
    """Count what completed after this one: `later` by the same job, which committed results; `later_runs` by others."""
    parent = folder.path.resolve().parent
    # They are only counted: those that cannot be read are left out.
    others = list_folders(parent.parent if folder.job_id else parent, [])
    # A savepoint that a user takes meanwhile commits nothing.
    others = [other for other in others if other.complete and not other.is_savepoint]
    same = [other for other in others if other.job_id == folder.job_id]
    if folder.number is not None:
        # A copy of the folder has the times of the copy; the numbers stay.
        later = sum(1 for other in same if (other.number or 0) > folder.number)
    else:
        later = sum(1 for other in same if _completed_after(other, folder))
    runs = sum(1 for other in others if other.job_id != folder.job_id and _completed_after(other, folder))
    return {"later": later, "later_runs": runs}


def _completed_after(other: CheckpointFolder, folder: CheckpointFolder) -> bool:
    return (other.completed_at or 0) > (folder.completed_at or 0)


def describe(jvm: Any, report: Report, folders: list[Place], rows: int) -> None:
    """Fill the report from the first checkpoint that can be restored; its problems say why those before it cannot.

    When none can, the report has what can be read of the first. Without a checkpoint it stays as it is: it says why
    there is none.
    """
    if not folders:
        return
    found: list[Report] = []
    for folder in folders:
        one = Report(report.engine, report.kind, report.path, counts=dict(report.counts))
        # A skipped checkpoint had completed: the job committed what belongs to it.
        one.counts["later"] = one.counts.get("later", 0) + len(found)
        one.steps = [step for step in report.steps if step.path == str(folder)]
        _describe(jvm, one, folder, rows)
        report.problems += one.problems
        found.append(one)
        if not one.problems:
            break
        one.steps[0].state, one.steps[0].reason = "damaged", "it cannot be restored, see the problems"
    chosen = found[0] if found[-1].problems else found[-1]
    report.counts["complete"] = report.counts.get("complete", 1) - sum(1 for one in found if one.problems)
    report.id, report.operators, report.transactions = chosen.id, chosen.operators, chosen.transactions
    report.configuration, report.restart = chosen.configuration, chosen.restart
    report.notes += chosen.notes


def _describe(jvm: Any, report: Report, folder: Place, rows: int) -> None:
    try:
        metadata = load_metadata(jvm, folder)
    except UnknownFormat as error:
        report.notes.append(str(error))
        report.steps[0].state, report.steps[0].reason = "unknown", "its metadata is of a version not known here"
        report.restart = Restart("unknown", None, f"What a restore from {folder.name} does is not known here")
        return
    except InspectorError as error:
        report.problems.append(str(error))
        report.restart = Restart("impossible", None, f"A restore from {folder.name} fails: its metadata cannot be read")
        return
    report.id = str(metadata.getCheckpointId())
    entries = operators(jvm, metadata)
    gone = {entry.id: missing_files(jvm, entry) for entry in entries}
    report.problems += [problem for problems in gone.values() for problem in problems]
    report.notes += _beside_the_state(jvm, entries, folder)
    offsets: dict[str, Offsets] = {}
    exactly_once: bool | None = None
    ranks: dict[str, int] = {}
    for entry in entries:
        operator = Operator(
            entry.id, entry.name, entry.uid, entry.parallelism, entry.max_parallelism, entry.state_bytes
        )
        report.operators.append(operator)
        ranks[entry.id] = STATE
        if gone[entry.id]:
            operator.state = [StateStore("its state", "not readable", note="a file of it is gone or cut short")]
            continue
        names = state_names(jvm, entry)
        try:
            if READER_STATE in names:
                ranks[entry.id] = SOURCE
                offsets[entry.label] = source_offsets(jvm, entry)
            if COMMITTER_STATE in names:
                ranks[entry.id] = SINK
                report.transactions += prepared(jvm, entry)
            if WRITER_STATE in names:
                ranks[entry.id] = SINK
                exactly_once = bool(exactly_once) or transactional_writers(jvm, entry) > 0
            operator.watermark = _watermark(jvm, entry, names)
            operator.state = [*keyed_state(jvm, entry, rows), *_clocks(jvm, entry, names)]
        except InspectorError as error:
            report.problems.append(str(error))
    report.operators.sort(key=lambda operator: (ranks[operator.id], operator.label))
    if exactly_once is not None:
        report.configuration = {"sink": EXACTLY_ONCE if exactly_once else AT_LEAST_ONCE}
    _sources(report, offsets, folder)
    if report.problems:
        report.restart = Restart("impossible", int(report.id), f"A restore from {folder.name} fails: see the problems")
    else:
        report.restart = predict(report, offsets, folder.name, exactly_once)


def _beside_the_state(jvm: Any, entries: list[Entry], folder: Place) -> list[str]:
    """Say what else a checkpoint needs, or holds: files that others share, records that barriers overtook."""
    notes = []
    files = {path: size for entry in entries for path, size in state_files(jvm, entry).items()}
    own = folder.resolve()
    shared = {path: size for path, size in files.items() if path.parent != own}
    if shared:
        what = f"{count(len(shared), 'file')} ({size_words(sum(shared.values()))}) in {next(iter(shared)).parent}"
        notes.append(f"{folder.name} needs {what}, which checkpoints share: a copy of it alone cannot be restored")
    overtaken = sum(in_flight_bytes(jvm, entry) for entry in entries)
    if overtaken:
        what = f"{size_words(overtaken)} of records that barriers overtook"
        notes.append(f"{folder.name} holds {what}: a restored job handles them first")
    return notes


def _watermark(jvm: Any, entry: Entry, names: set[str]) -> int | None:
    if WATERMARK_STATE not in names:
        return None
    # Each subtask kept its own; a window is closed when all of them have passed it.
    return min(list_longs(jvm, entry, WATERMARK_STATE), default=None)


def _clocks(jvm: Any, entry: Entry, names: set[str]) -> list[StateStore]:
    if CLOCK_STATE not in names:
        return []
    clocks = sorted(list_pairs(jvm, entry, CLOCK_STATE))
    rows = [
        {"partition": str(partition), "closed_windows_up_to": time_words(closed)}
        for partition, closed in clocks
        if closed >= 0
    ]
    return [StateStore(CLOCK_STATE, "list", keys=len(clocks), rows=rows)]


def _sources(report: Report, offsets: dict[str, Offsets], folder: Place) -> None:
    step = next(step for step in report.steps if step.path == str(folder))
    for label, found in offsets.items():
        partitions = partitions_of(found)
        topics = ", ".join(sorted({each_one.topic for each_one in partitions})) or "not known yet"
        words = f"source {label}, Kafka topic {topics}: {positions(partitions) or 'no partition was read yet'}"
        step.sources.append(SourceRange("kafka", words, partitions))
