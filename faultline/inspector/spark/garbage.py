"""Files in a Spark checkpoint, and in the file sink's output, that no batch on record needs. No JVM.

What Spark removes by itself, a killed query may leave: temporary files (CheckpointFileManager), log files and state
before the oldest batch that is kept (spark.sql.streaming.minBatchesToRetain), output that no entry of the sink's log
names (ManifestFileCommitProtocol.abortJob).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote

from faultline.inspector.garbage import Garbage
from faultline.inspector.spark.log import COMPACT, LogError, LogFolder, list_log
from faultline.inspector.spark.offsets import read_planned
from faultline.inspector.spark.sources import kind_of, log_entries, source_folder
from faultline.inspector.spark.state_files import LISTED_IN, StoreFiles, listed_in, operator_folders, stores_of
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location
from faultline.storage.reading import names

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
TEMPORARY = re.compile(rf"\..+\.{UUID}\.tmp")
"""The name under which a file is written (RenameBasedFSDataOutputStream)."""
PART = re.compile(rf"part-[0-9]{{5,}}-{UUID}[-.].*")
"""The name of a file of output (ManifestFileCommitProtocol.newTaskTempFile)."""
CHECKSUMS = (".{}.crc", "{}.crc", ".{}.crc.crc")
"""Names of the checksums of a file: Hadoop's, Spark's of a state file, and Hadoop's of that one."""
UNSEEN = (
    "other queries that write into the same folders",
    "what a running query is at: files that are newer than its newest commit but one are not listed",
)
NO_OUTPUT = "the output of a file sink, which the checkpoint does not name: give its folder by --sink"


def find_garbage(path: Location, output: Location | None) -> Garbage:
    """Find what is left over in the checkpoint of a query, and in `output`, the folder of its file sink."""
    found = Garbage("spark", str(path), unseen=[*UNSEEN, *([] if output else [NO_OUTPUT])])
    offsets, commits = list_log(path / "offsets"), list_log(path / "commits")
    done = sorted(set(offsets.numbers) & set(commits.numbers))
    if len(done) < 2:
        found.unseen.append(f"{path} has no two batches that are committed: what it holds may be of the first ones")
        return found
    first = offsets.numbers[0]
    settled = (commits.path / str(done[-2])).stat().st_mtime
    # A snapshot of the state is written beside the batches, and may take longer than several of them.
    _temporary(found, path, settled, (offsets.path / str(first)).stat().st_mtime)
    # A batch that runs again asks for the commit before it, and a start for the newest one.
    old = [each for each in commits.numbers[:-1] if each < first - 1]
    _add(found, commits.path, map(str, old), f"the oldest batch that is kept is {first}")
    _sources(found, path, offsets, first)
    for operator in operator_folders(path):
        stores = stores_of(operator, 0)
        if any(store.has_ids for store in stores):
            found.unseen.append(
                f"old state in {operator}: its files have state ids, and say inside which ones they need"
            )
            continue
        for store in stores:
            _state(found, store, first)
    if output is not None:
        _output(found, output, first, settled)
    return found


def _add(found: Garbage, folder: Location, files: Iterable[str], why: str, before: float | None = None) -> None:
    """List files of a folder, with their checksums."""
    there = set(names(folder)) if folder.is_dir() else set()
    for file in files:
        listed = len(found.files)
        if file in there:
            found.add(folder / file, why, before)
        if len(found.files) > listed:
            for name in there & {each.format(file) for each in CHECKSUMS}:
                found.add(folder / name, f"the checksum of {file}")


def _temporary(found: Garbage, folder: Location, settled: float, settled_state: float) -> None:
    for file in folder.rglob("*.tmp"):
        if TEMPORARY.fullmatch(file.name):
            in_state = file.relative_to(folder).parts[0] == "state"
            why = "a temporary file: its writer was stopped"
            _add(found, file.parent, [file.name], why, settled_state if in_state else settled)


def _sources(found: Garbage, path: Location, offsets: LogFolder, first: int) -> None:
    try:
        ends = read_planned(offsets, first).ends
    except LogError as error:
        found.problems.append(f"{offsets.path / str(first)} cannot be read: {error}; the sources' logs are left alone")
        return
    for name, end in ends.items():
        if kind_of(end) == "file":
            _folded(found, list_log(source_folder(path, name, "file")), end["logOffset"])


def _folded(found: Garbage, log: LogFolder, needed: int) -> None:
    """List entries of a compactible log from before the entry `needed` that a compact file repeats.

    The newest two compact files stay in any case: they give the interval (CompactibleFileStreamLog.compactInterval).
    """
    if len(log.compact) < 2 or not all(log.has(number) for number in log.valid()):
        return
    compact = max((each for each in log.compact[:-1] if each <= needed), default=-1)
    old = [str(each) for each in log.numbers if each < compact]
    old += [f"{each}{COMPACT}" for each in log.compact if each < compact]
    _add(found, log.path, old, f"{compact}{COMPACT} has its entries, and no batch that is kept needs the file itself")


def _state(found: Garbage, store: StoreFiles, first: int) -> None:
    """List state from before the snapshot that the oldest batch on record loads."""
    base = max((each for each in store.snapshots if each <= first and not store.broken(each)), default=-1)
    if base < 0:
        return
    why = f"batch {first}, the oldest that is kept, loads version {base} and those after it"
    versions = [*store.changes.items(), *store.snapshots.items()]
    _add(found, store.path, [each for version, files in versions for each in files if version < base], why)
    snapshots = [each for version, files in store.snapshots.items() if version >= base for each in files]
    parts = [listed_in(store.path / each) for each in snapshots if each.endswith(".zip")]
    if not parts or None in parts:
        return
    needed = {name for each in parts if each is not None for name in each}
    # What is uploaded for a later snapshot is newer than this one, which is written after its own parts.
    since = min((store.path / each).stat().st_mtime for each in store.snapshots[base])
    for suffix, folder in LISTED_IN.items():
        below = store.path / folder
        files = [each for each in (names(below) if below.is_dir() else []) if each.endswith(suffix)]
        _add(
            found, below, [each for each in files if each not in needed], f"no snapshot from {base} on lists it", since
        )


def _output(found: Garbage, output: Location, first: int, settled: float) -> None:
    log = list_log(output / SINK_LOG)
    if not log.valid():
        found.unseen.append(f"{output} has no {SINK_LOG}: which of its files count is not on record")
        return
    _temporary(found, log.path, settled, settled)
    try:
        entries = [entry for number in log.valid() for entry in log_entries(log, number)]
    except LogError as error:
        found.problems.append(f"{error}: what it names is not known, so no file of {output} is listed")
        return
    named = {unquote(PurePosixPath(entry["path"]).name) for entry in entries}
    for file in output.rglob("part-*"):
        if PART.fullmatch(file.name) and file.name not in named and file.is_file():
            why = "the sink's log does not name it: Spark's readers skip it, other programs read it"
            _add(found, file.parent, [file.name], why, settled)
    _folded(found, log, first)
