"""One Flink checkpoint, savepoint or folder of them as a Report."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from faultline.inspector.errors import InspectorError, UnknownConnector, UnknownFormat
from faultline.inspector.flink.folder import METADATA, CheckpointFolder, is_checkpoint_folder, list_folders, read_folder
from faultline.inspector.flink.jvm import java_cause
from faultline.inspector.flink.metadata import (
    Entry,
    StateFiles,
    in_flight_bytes,
    kind_of,
    load_metadata,
    master_hooks,
    missing_files,
    opens_all_the_same,
    operators,
    state_files,
)
from faultline.inspector.flink.offsets import (
    READER_STATE,
    Offsets,
    list_longs,
    list_pairs,
    partitions_at_their_end,
    source_offsets,
)
from faultline.inspector.flink.restart import partitions_of, predict
from faultline.inspector.flink.sink import COMMITTER_STATE, WRITER_STATE, prepared, transactional_writers
from faultline.inspector.flink.state import NOT_READ, is_of_changelog, keyed_state
from faultline.inspector.growth import MINIMUM, bytes_per_day
from faultline.inspector.model import CheckpointStep, Growth, Operator, Report, Restart, SourceRange, StateStore
from faultline.inspector.words import count, positions, size_words, time_words
from faultline.storage.location import Location

WATERMARK_STATE = "watermark"
"""Union list state in which the table runtime's window operators keep their watermark."""
CLOCK_STATE = "partition-clocks"
"""Union list state in which this project's job keeps the clock of each Kafka partition (OnTime.java)."""
READ_STATES = {READER_STATE, COMMITTER_STATE, WRITER_STATE, WATERMARK_STATE, CLOCK_STATE}
LEGACY_SOURCES = {
    "topic-partition-offset-states": "the old FlinkKafkaConsumer",
    "Kinesis-Stream-Shard-State": "the old FlinkKinesisConsumer",
    "offset-states": "the old Debezium source",
    "topic-offset-states": "the old FlinkPulsarSource",
}
"""List states of sources from before SourceReaderState: their serializers need the classes of the connector."""
MISSING = re.compile(r"state file (.+) of operator .* is missing")
COPIED = "copied"
"""State of a checkpoint that has all its files, and none where its metadata names them."""
LEVELS = 4
"""Folders from a checkpoint up, in which a copy of a recorded folder is looked for."""
CHANGELOG_NOTE = (
    "its state is of the changelog state backend: a job that has this backend restores it with the claim mode CLAIM;"
    " with NO_CLAIM, the default, it fails"
)
SINKS = {True: "exactly-once (transactions)", False: "no transactions (at-least-once, if it is Kafka's)"}
"""Words on a sink that keeps transactions, and on one whose state is empty."""
REFUSED = ("doesn't support recovery", "RocksDB takes its files for corrupt")
"""Words on keyed state that a restore fails at, too.

KeyedBackendSerializationProxy says the first of a header of a version that no Flink since 1.17 reads, such as NULs; the
second is of files that RocksDBOperationUtils.openDB opens as KeyedFiles.java does.
"""
PLACES = 3
"""Folders of state that a note names."""
SOURCE, STATE, SINK = range(3)
"""The order in which operators are shown; Flink's own is that of a hash table."""


def step_of(folder: CheckpointFolder) -> CheckpointStep:
    """Return what is known of one folder without a JVM."""
    return CheckpointStep(
        number=folder.number,
        name=folder.name,
        state="complete" if folder.complete else "incomplete",
        at=round((folder.completed_at or folder.changed_at) * 1000),
        reason=folder.reason,
        size=folder.size,
        path=str(folder.path),
    )


def folder_report(path: Location) -> tuple[Report, list[Location]]:
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
    """Count what completed after this one: `later` by the same job, which committed results; `later_runs` by others.

    `apart`: 1 for one that is in no folder of a job, where the later ones of its job would be.
    """
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
    return {"later": later, "later_runs": runs, "apart": int(not folder.job_id)}


def _completed_after(other: CheckpointFolder, folder: CheckpointFolder) -> bool:
    return (other.completed_at or 0) > (folder.completed_at or 0)


def describe(jvm: Any, report: Report, folders: list[Location], rows: int, everything: bool = False) -> None:
    """Fill the report from the first checkpoint that can be restored; its problems say why those before it cannot.

    When none can, the report has what can be read of the first. Without a checkpoint it stays as it is: it says why
    there is none. `everything`: the entries of all states are read, timers and lists too.
    """
    if not folders:
        return
    found: list[Report] = []
    for folder in folders:
        one = Report(report.engine, report.kind, report.path, counts=dict(report.counts))
        # A skipped checkpoint had completed: the job committed what belongs to it.
        one.counts["later"] = one.counts.get("later", 0) + len(found)
        one.steps = [step for step in report.steps if step.path == str(folder)]
        _describe(jvm, one, folder, rows, everything)
        report.problems += one.problems
        found.append(one)
        if not one.problems:
            break
        if one.steps[0].state != COPIED:
            one.steps[0].state, one.steps[0].reason = "damaged", "it cannot be restored, see the problems"
    chosen = found[0] if found[-1].problems else found[-1]
    unrestorable = sum(1 for one in found if one.problems or one.steps[0].state == "unknown")
    report.counts["complete"] = report.counts.get("complete", 1) - unrestorable
    report.kind = report.kind if report.kind == "folder" else chosen.kind
    report.id, report.operators, report.transactions = chosen.id, chosen.operators, chosen.transactions
    report.configuration, report.restart = chosen.configuration, chosen.restart
    report.notes += chosen.notes
    if len({step.path.rpartition("/")[0] for step in report.steps}) > 1:
        report.notes.insert(0, f"opened: {chosen.steps[0].path}")


def _describe(jvm: Any, report: Report, folder: Location, rows: int, everything: bool) -> None:
    try:
        metadata = load_metadata(jvm, folder)
        savepoint, native = kind_of(metadata, folder)
    except UnknownFormat as error:
        report.notes.append(str(error))
        report.steps[0].state, report.steps[0].reason = "unknown", "not all of its metadata is known here"
        report.restart = Restart("unknown", None, f"What a restore from {folder.name} does is not known here")
        return
    except InspectorError as error:
        report.problems.append(str(error))
        report.restart = Restart("impossible", None, f"A restore from {folder.name} fails: its metadata cannot be read")
        return
    report.id = str(metadata.getCheckpointId())
    if report.kind == "checkpoint" and savepoint:
        report.kind = "savepoint"
    if native:
        report.notes.append("a native savepoint: its state is in the format of the state backend that wrote it")
    reading = _Reading(rows, everything)
    if hooks := ", ".join(master_hooks(metadata)):
        report.notes.append(
            f"it has state of master hooks: {hooks}; a job without a hook of that name does not restore it, unless with"
            " --allowNonRestoredState"
        )
        reading.unseen.append(f"the state of master hooks: {hooks}")
    entries = operators(metadata)
    for entry in entries:
        _operator(jvm, report, reading, entry)
    recorded = _copied(report, reading, folder)
    report.notes += _beside_the_state(reading, folder)
    report.operators.sort(key=lambda operator: (reading.ranks[operator.id], operator.label))
    if reading.sinks:
        kinds = sorted({is_transactional for _, is_transactional in reading.sinks}, reverse=True)
        report.configuration = {"sink": " and ".join(SINKS[each_one] for each_one in kinds)}
    _sources(report, reading, folder)
    if recorded and len(report.problems) == 1:
        why = f"A restore from {folder.name} fails here: Flink opens its files at their recorded paths alone"
        report.restart = Restart("impossible", int(report.id), why)
        report.steps[0].state, report.steps[0].reason = COPIED, "its files are not where its metadata names them"
        report.restart.details.append(f"it can be restored once the copy's files are in {', '.join(recorded)}")
    elif report.problems:
        report.restart = Restart("impossible", int(report.id), f"A restore from {folder.name} fails: see the problems")
    elif entries and all(entry.finished for entry in entries):
        why = f"Restored from {folder.name} now, the job ends at once: all its tasks had ended"
        report.restart = Restart("restore", int(report.id), why)
    else:
        offsets = [found for _, found in reading.offsets]
        report.restart = predict(report, offsets, folder.name, reading.sinks, reading.unseen, at_end=reading.at_end)


@dataclass
class _Reading:
    """Findings on a checkpoint's operators.

    `rows` limits the preview of each state; `everything`: timers and lists have one too.
    `offsets`: those of each source of Kafka, with its label: two operators may have the same. `unread`: words on each
    source whose positions are not read here. `unseen`: what a restore reads and this program does not. `sinks`: whether
    each one that may be Kafka's keeps transactions, with its label. `at_end`: partitions that were read to their end.
    """

    rows: int
    everything: bool
    offsets: list[tuple[str, Offsets]] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    sinks: list[tuple[str, bool]] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    files: StateFiles = field(default_factory=StateFiles)
    overtaken: int = 0
    at_end: int = 0


def _operator(jvm: Any, report: Report, reading: _Reading, entry: Entry) -> None:
    """Read one operator into the report. What cannot be read for lack of its classes or its files is named there."""
    operator = Operator(entry.id, entry.name, entry.uid, entry.parallelism, entry.max_parallelism, entry.state_bytes)
    report.operators.append(operator)
    reading.ranks[entry.id] = STATE
    if entry.finished:
        operator.words = "finished: all its tasks had ended, and a restored job does not run them again"
        return
    try:
        files = state_files(entry)
        gone = missing_files(entry, files)
        reading.files.here |= files.here
        reading.files.elsewhere |= files.elsewhere
        reading.overtaken += in_flight_bytes(entry)
        if is_of_changelog(entry) and CHANGELOG_NOTE not in report.notes:
            report.notes.append(CHANGELOG_NOTE)
    except InspectorError as error:
        report.problems.append(str(error))
        return
    except Py4JError as error:
        _unreadable(reading, operator, f"its state is of a kind that is not known here ({java_cause(error)})")
        return
    if gone and opens_all_the_same(jvm, entry, files):
        report.notes += [f"{each}; Flink opens it all the same" for each in gone]
        reading.unseen.append(f"which file belongs to {entry.label}")
    elif gone:
        report.problems += gone
        operator.state = [StateStore("its state", "not readable", note="a file of it is gone, elsewhere or cut short")]
        return
    try:
        _read(jvm, report, reading, entry, operator)
    except (InspectorError, Py4JError, OSError) as error:
        why = java_cause(error) if isinstance(error, Py4JError) else str(error)
        if files.elsewhere or isinstance(error, UnknownConnector):
            _unreadable(reading, operator, why)
        else:
            report.problems.append(why)


def _read(jvm: Any, report: Report, reading: _Reading, entry: Entry, operator: Operator) -> None:
    """Read the states of an operator, whose files are there."""
    size = size_words(entry.coordinator_bytes)
    if READER_STATE in entry.lists or LEGACY_SOURCES.keys() & entry.lists:
        reading.ranks[entry.id] = SOURCE
        operator.words = _source(jvm, reading, entry)
    elif entry.coordinator_bytes:
        operator.words = f"{size} with its coordinator, not read here"
        reading.unseen.append(f"what the coordinator of {entry.label} keeps ({size})")
    if COMMITTER_STATE in entry.lists or WRITER_STATE in entry.lists:
        reading.ranks[entry.id] = SINK
        operator.words = _sink(jvm, report, reading, entry) or operator.words
    operator.watermark = _watermark(jvm, entry)
    operator.state = keyed_state(jvm, entry, reading.rows, reading.everything)
    for store in operator.state:
        if any(words in store.note for words in REFUSED):
            why = store.note.removeprefix(NOT_READ).partition(". ")[0]
            report.problems.append(f"operator {entry.label}: Flink refuses its keyed state: {why}")
    if any(store.note.startswith(NOT_READ) for store in operator.state):
        reading.unseen.append(f"the keyed state of {operator.label}")
    lists = _other_states(reading, entry)
    if not reading.everything:
        operator.state += [*_clocks(jvm, entry), *lists]


def _copied(report: Report, reading: _Reading, folder: Location) -> list[str]:
    """Make one problem of the files that a copy has elsewhere than its metadata names; list the recorded folders.

    Flink writes the path of a file that checkpoints may share as it is (MetadataV2V3SerializerBase: FileStateHandle;
    RelativeFileStateHandle for those in `chk-N`), and opens the file there alone (FileStateHandle.openInputStream). The
    changelog state backend writes all files in this way.
    """
    paths = {str(path): path for path in reading.files.here if isinstance(path, Path)}
    missing = {
        problem: paths[match[1]]
        for problem in report.problems
        if (match := MISSING.match(problem)) and match[1] in paths
    }
    candidates = {recorded: _like(folder, recorded) for recorded in {path.parent for path in missing.values()}}
    found: dict[Path, Location] = {}
    for path in missing.values():
        for candidate in candidates[path.parent]:
            if _has(candidate / path.name, reading.files.here[path]):
                found[path] = candidate
                break
    if not found:
        return []
    moves = Counter((str(path.parent), str(candidate)) for path, candidate in found.items())
    what = ", ".join(f"{each} of {recorded} in {candidate}" for (recorded, candidate), each in sorted(moves.items()))
    report.problems[:] = [each for each in report.problems if missing.get(each) not in found] + [
        f"{folder} is a copy: its metadata names {count(len(found), 'state file')} by paths at which nothing is; the"
        f" copy has {what}"
    ]
    for path in found:
        del reading.files.here[path]
    return sorted({recorded for recorded, _ in moves})


def _like(folder: Location, recorded: Path) -> list[Location]:
    """Folders of a copy that may be the recorded one: the checkpoint's own, and those near it that end as it does."""
    ends = ["/".join(recorded.parts[-length:]) for length in range(len(recorded.parts) - 1, 0, -1)]
    candidates, near = [folder], folder.resolve()
    for _ in range(LEVELS):
        candidates += [near / end for end in ends if (near / end).is_dir()]
        near = near.parent
    return candidates


def _has(file: Location, size: int) -> bool:
    try:
        return file.stat().st_size >= size
    except (FileNotFoundError, NotADirectoryError):
        return False


def _unreadable(reading: _Reading, operator: Operator, why: str) -> None:
    operator.state = [StateStore("its state", "unknown", note=f"not read: {why}")]
    reading.unseen.append(f"the state of {operator.label} ({size_words(operator.state_bytes or 0)})")


def _source(jvm: Any, reading: _Reading, entry: Entry) -> str:
    """Read the positions of a source of Kafka; of another one, return words on what it keeps."""
    legacy = next((name for name in LEGACY_SOURCES if name in entry.lists), None)
    if legacy is None:
        try:
            offsets = source_offsets(jvm, entry)
            reading.offsets.append((entry.label, offsets))
            reading.at_end += 0 if offsets else partitions_at_their_end(jvm, entry)
        except UnknownConnector:
            splits = count(entry.lists[READER_STATE][1], "split")
            what = (
                f"unknown source, not of this Kafka connector: {splits} with its readers,"
                f" {size_words(entry.coordinator_bytes)} with its coordinator"
            )
        else:
            return ""
    else:
        what = f"{count(entry.lists[legacy][1], 'position')} of {LEGACY_SOURCES[legacy]}, unknown to this program"
    reading.unread.append((entry.label, what))
    return what


def _sink(jvm: Any, report: Report, reading: _Reading, entry: Entry) -> str:
    """Read the transactions of a sink of Kafka; of another one, return words on it."""
    try:
        if COMMITTER_STATE in entry.lists:
            report.transactions += prepared(jvm, entry)
        if WRITER_STATE in entry.lists:
            reading.sinks.append((entry.label, transactional_writers(jvm, entry) > 0))
    except UnknownConnector:
        what = "its writers keep" if WRITER_STATE in entry.lists else "it prepared to commit"
        size = size_words(entry.state_bytes)
        reading.unseen.append(f"what the sink {entry.label} has in its state ({size})")
        return f"unknown sink, not of this Kafka connector: what {what} is not read"
    return ""


def _other_states(reading: _Reading, entry: Entry) -> list[StateStore]:
    """The list states that nothing here reads, by name and number; the entries of a broadcast state are in one."""
    others = sorted(entry.lists.keys() - READ_STATES - LEGACY_SOURCES.keys())
    if held := [name for name in others if entry.lists[name][1]]:
        reading.unseen.append(f"{', '.join(held)} of {entry.label}")
    found = []
    for name in others:
        kind, elements = entry.lists[name]
        found.append(StateStore(name, kind, None if kind == "broadcast" else elements, note="not read here"))
    return found


def _beside_the_state(reading: _Reading, folder: Location) -> list[str]:
    """Say what else a checkpoint needs, or holds: files that others share, records that barriers overtook."""
    notes = []
    own = {folder.absolute(), folder.resolve()}
    shared = {str(path): size for path, size in reading.files.here.items() if path.parent not in own}
    if shared:
        what = _by_folder(shared)
        notes.append(f"{folder.name} needs {what}, which checkpoints share: a copy of it alone cannot be restored")
    if reading.files.elsewhere:
        what = _by_folder(reading.files.elsewhere)
        notes.append(f"{folder.name} needs {what}, which cannot be reached from here: not checked")
        reading.unseen.append(what)
    if reading.overtaken:
        what = f"{size_words(reading.overtaken)} of records that barriers overtook"
        notes.append(f"{folder.name} holds {what}: a restored job handles them first")
        reading.unseen.append(what)
    return notes


def _by_folder(files: dict[str, int]) -> str:
    """`2 files (20 bytes) in /a, 1 file (10 bytes) in /b`."""
    folders: dict[str, list[int]] = {}
    for name, size in files.items():
        folders.setdefault(name.rpartition("/")[0], []).append(size)
    found = [
        f"{count(len(sizes), 'file')} ({size_words(sum(sizes))}) in {folder}"
        for folder, sizes in sorted(folders.items())
    ]
    more = [f"more in {count(len(found) - PLACES, 'other folder')}"] if len(found) > PLACES else []
    return ", ".join([*found[:PLACES], *more])


def _watermark(jvm: Any, entry: Entry) -> int | None:
    if WATERMARK_STATE not in entry.lists:
        return None
    # Each subtask kept its own; a window is closed when all of them have passed it.
    return min(list_longs(jvm, entry, WATERMARK_STATE), default=None)


def _clocks(jvm: Any, entry: Entry) -> list[StateStore]:
    if CLOCK_STATE not in entry.lists:
        return []
    clocks = sorted(list_pairs(jvm, entry, CLOCK_STATE))
    rows = [
        {"partition": str(partition), "closed_windows_up_to": time_words(closed)}
        for partition, closed in clocks
        if closed >= 0
    ]
    return [StateStore(CLOCK_STATE, "list", keys=len(clocks), rows=rows)]


def _sources(report: Report, reading: _Reading, folder: Location) -> None:
    step = next(step for step in report.steps if step.path == str(folder))
    for label, found in reading.offsets:
        partitions = partitions_of(found)
        topics = ", ".join(sorted({each_one.topic for each_one in partitions})) or "not known yet"
        words = f"source {label}, Kafka topic {topics}: {positions(partitions) or 'no partition was read yet'}"
        step.sources.append(SourceRange("kafka", words, partitions))
    for label, what in reading.unread:
        step.sources.append(SourceRange("unknown", f"source {label}: {what}"))
        reading.unseen.append(f"the position of source {label}")
