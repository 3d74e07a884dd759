"""One Flink checkpoint, savepoint or folder of them as a Report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.errors import InspectorError
from inspector.flink.folder import METADATA, CheckpointFolder, is_checkpoint_folder, list_folders, read_folder
from inspector.flink.metadata import Entry, load_metadata, missing_files, operators
from inspector.flink.offsets import Offsets, handles_with, is_source, list_longs, source_offsets
from inspector.flink.sink import has_sink, prepared, transactional_writers
from inspector.flink.state import keyed_state
from inspector.model import Operator, Partition, Report, Restart, SourceRange, StateStore, Step
from inspector.words import count, positions

WATERMARK_STATE = "watermark"
"""Union list state in which the table runtime's window operators keep their watermark."""


def step_of(folder: CheckpointFolder) -> Step:
    """Say of one folder what is known without a JVM."""
    return Step(
        number=folder.number,
        name=folder.name,
        state="complete" if folder.complete else "incomplete",
        at=round((folder.completed_at or folder.changed_at) * 1000),
        reason=folder.reason,
        size=folder.size,
        path=str(folder.path),
    )


def folder_report(path: Path) -> tuple[Report, Path | None]:
    """Report a path without a JVM, and the checkpoint to open: the path itself, or the newest restorable below it.

    Raises InspectorError when the path is neither a checkpoint nor a folder of checkpoints.
    """
    path = path.parent if path.name == METADATA else path
    if is_checkpoint_folder(path):
        folder = read_folder(path)
        if folder is None:
            raise InspectorError(f"{path} went away while it was read: the job deleted it; choose a newer one")
        report = Report("flink", "savepoint" if folder.is_savepoint else "checkpoint", str(path))
        report.steps = [step_of(folder)]
        report.counts = {"later": _later(folder)}
        if not folder.complete:
            report.problems.append(f"{path} cannot be restored: {folder.reason}")
            return report, None
        return report, path
    folders = list_folders(path)
    if not folders:
        raise InspectorError(f"{path} holds no chk-N and no savepoint: not a checkpoint folder of Flink, or empty")
    report = Report("flink", "folder", str(path))
    report.steps = [step_of(folder) for folder in folders]
    complete = [folder for folder in folders if folder.complete]
    report.counts = {"folders": len(folders), "complete": len(complete)}
    if not complete:
        report.problems.append(f"{path}: none of {count(len(folders), 'folder')} can be restored")
        report.restart = Restart("impossible", None, "Nothing here can be restored; a job starts from the beginning")
        return report, None
    return report, complete[-1].path


def _later(folder: CheckpointFolder) -> int:
    """Count the checkpoints of the same job that completed after this one: their results were committed."""
    return sum(
        1
        for other in list_folders(folder.path.resolve().parent)
        if other.complete and (other.completed_at or 0) > (folder.completed_at or 0)
    )


def describe(jvm: Any, report: Report, folder: Path, rows: int) -> None:
    """Fill the report from the files of one checkpoint; what cannot be read goes to its problems."""
    try:
        metadata = load_metadata(jvm, folder)
    except InspectorError as error:
        report.problems.append(str(error))
        report.restart = Restart("impossible", None, f"A restore from {folder.name} fails: its metadata cannot be read")
        return
    report.id = str(metadata.getCheckpointId())
    entries = operators(jvm, metadata)
    gone = {entry.id: missing_files(jvm, entry) for entry in entries}
    report.problems += [problem for problems in gone.values() for problem in problems]
    offsets: dict[str, Offsets] = {}
    exactly_once: bool | None = None
    for entry in entries:
        operator = Operator(
            entry.id, entry.name, entry.uid, entry.parallelism, entry.max_parallelism, entry.state_bytes
        )
        report.operators.append(operator)
        if gone[entry.id]:
            operator.state = [StateStore("state", "unreadable", note="a file of it is gone")]
            continue
        try:
            if is_source(jvm, entry):
                offsets[entry.label] = source_offsets(jvm, entry)
            if has_sink(jvm, entry):
                report.transactions += prepared(jvm, entry)
            writers = transactional_writers(jvm, entry)
            if writers is not None:
                exactly_once = bool(exactly_once) or writers > 0
            operator.watermark = _watermark(jvm, entry)
            operator.state = keyed_state(jvm, entry, rows)
        except InspectorError as error:
            report.problems.append(str(error))
    if exactly_once is not None:
        report.configuration = {"sink": "exactly-once (transactions)" if exactly_once else "no transactions"}
    _sources(report, offsets, folder)
    report.restart = _restart(report, offsets, folder, exactly_once)


def _watermark(jvm: Any, entry: Entry) -> int | None:
    handles = handles_with(jvm, entry, WATERMARK_STATE)
    values = list_longs(jvm, handles, WATERMARK_STATE) if handles else []
    # Each subtask kept its own; a window is closed when all of them have passed it.
    return min(values) if values else None


def _partitions(offsets: Offsets) -> list[Partition]:
    return [Partition(topic, partition, offset, None) for (topic, partition), offset in offsets.items()]


def _sources(report: Report, offsets: dict[str, Offsets], folder: Path) -> None:
    step = next(step for step in report.steps if Path(step.path) == folder)
    for label, found in offsets.items():
        partitions = _partitions(found)
        topics = ", ".join(sorted({each_one.topic for each_one in partitions})) or "not known yet"
        words = f"source {label}, Kafka topic {topics}: {positions(partitions) or 'no partition was read yet'}"
        step.sources.append(SourceRange("kafka", words, partitions))


def _restart(report: Report, offsets: dict[str, Offsets], folder: Path, exactly_once: bool | None) -> Restart:
    number = int(report.id)
    if report.problems:
        return Restart("impossible", number, f"A restore from {folder.name} fails: see the problems")
    merged: Offsets = {}
    for found in offsets.values():
        for partition, offset in found.items():
            merged[partition] = min(offset, merged.get(partition, offset))
    partitions = _partitions(merged)
    if not partitions:
        sentence = "Restored now, it starts where the job is told to: no Kafka partition had been read"
        return Restart("restore", number, sentence)
    restart = Restart("restore", number, f"Restored now, it reads on from {positions(partitions)}", partitions)
    restart.details.append("nothing before them is read again")
    waiting = len(report.transactions)
    if waiting:
        restart.details.append(
            f"first it commits {count(waiting, 'prepared transaction')}, unless that was done already"
        )
    later = report.counts.get("later", 0)
    if exactly_once and later:
        restart.details.append(
            f"{count(later, 'later checkpoint')} committed results that stay in the topic: those windows are written"
            " a second time"
        )
    elif exactly_once:
        restart.details.append(
            "what its sink wrote after this checkpoint was not committed and is aborted; under at-least-once the"
            " results of the records behind these offsets would be written again"
        )
    elif exactly_once is False:
        restart.details.append(
            "its sink is not transactional: results that it wrote after this checkpoint are written again"
        )
    return restart
