"""Files in a Flink job's folder that no retained checkpoint or savepoint names. No JVM.

A `_metadata` names each state file by its path or by its name alone, as plain text (MetadataV2V3SerializerBase), and
every such name is a UUID (FsCheckpointStreamFactory). So a file is needed when its name is in the bytes of any
`_metadata`: this holds for every version of the format, every state backend, and for a copy in another place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import (
    JOB_ID,
    METADATA,
    CheckpointFolder,
    is_checkpoint_folder,
    list_folders,
)
from faultline.inspector.garbage import Garbage
from faultline.storage.location import Location

SHARED, TASK_OWNED = "shared", "taskowned"
"""Folders of a job beside its `chk-N`. Their own folders are the live files of running tasks, named or not: databases
of ForSt (ForStStateBackend.getForStBasePath), and merged files, which tasks open once and append to for each checkpoint
(AcrossCheckpointFileMergingSnapshotManager)."""
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NAME = re.compile(UUID)
NAMES = re.compile(f"(?=({UUID}))".encode())
"""Each UUID in a text, also one that begins inside what looks like another."""
TASK_OWNED_SECONDS = 86_400
"""Age of a file in `taskowned/`, before the newest checkpoint, from which on no task is still at it.

The changelog state backend writes a materialization over several checkpoints, and none of them names it until it is
whole (PeriodicMaterializationManager); the default interval is ten minutes.
"""
UNSEEN = (
    "jobs and savepoints elsewhere, and copies of a _metadata: a file that only they name counts as left over",
    "the unfinished checkpoint of a running job: files newer than its newest complete checkpoint are not listed; stop a"
    " job that takes several checkpoints at a time before you remove any",
    "whether a _metadata is whole: scripts/inspect.sh opens it",
    "files of the changelog state backend in a folder of its own (state.changelog.dstl.dfs.base-path)",
)


def find_garbage(path: Location) -> Garbage:
    """Find what is left over in the folder of a job, or in a folder with those of several.

    Raises InspectorError for a single checkpoint, which shares its files with others.
    """
    if path.name == METADATA or is_checkpoint_folder(path):
        raise InspectorError(f"{path} is one checkpoint; name the folder that it is in: checkpoints share files")
    found = Garbage("flink", str(path), unseen=list(UNSEEN))
    folders = list_folders(path, found.problems)
    named = _names([*folders, *_beside(path, found.problems)], found.problems)
    if found.problems:
        # What cannot be read may name any of the files.
        return found
    for job in sorted({folder.path.parent for folder in folders if folder.number is not None}):
        _of_a_job(found, job, [folder for folder in folders if folder.path.parent == job], named)
    found.unseen += [
        f"{each.path} has no {METADATA}: a savepoint that is being written, or one that failed"
        for each in folders
        if each.is_savepoint and not each.complete
    ]
    return found


def _beside(path: Location, problems: list[str]) -> list[CheckpointFolder]:
    """Checkpoints of the jobs beside a job: one that was restored with CLAIM goes on with the files of another."""
    job = path.resolve()
    if not JOB_ID.fullmatch(job.name):
        return []
    others = [
        each
        for each in job.parent.iterdir()
        if each.name != job.name and (JOB_ID.fullmatch(each.name) or is_checkpoint_folder(each)) and each.is_dir()
    ]
    return [folder for each in others for folder in list_folders(each, problems)]


def _names(folders: list[CheckpointFolder], problems: list[str]) -> set[str]:
    named: set[str] = set()
    for folder in folders:
        if folder.closed:
            problems.append(folder.closed)
        if not folder.complete:
            continue
        try:
            named.update(name.decode() for name in NAMES.findall((folder.path / METADATA).read_bytes()))
        except FileNotFoundError:
            # A newer one goes on with some of its files.
            problems.append(f"{folder.path} went away while it was read: the job deleted it; try again")
        except OSError as error:
            problems.append(f"{folder.path / METADATA} cannot be read: {error.strerror}")
    return named


def _of_a_job(found: Garbage, job: Location, folders: list[CheckpointFolder], named: set[str]) -> None:
    complete = [folder for folder in folders if folder.complete and folder.number is not None]
    if not complete:
        found.unseen.append(f"{job} has no complete checkpoint: what it holds may be that of a job that has just begun")
        return
    newest = max(complete, key=lambda folder: folder.number or 0)
    since = newest.completed_at or 0.0

    def add(files: Iterable[Location], why: str, before: float) -> None:
        for file in files:
            if NAME.fullmatch(file.name) and file.name not in named and file.is_file():
                found.add(file, why, before)

    for name, before in ((SHARED, since), (TASK_OWNED, since - TASK_OWNED_SECONDS)):
        inside = list((job / name).glob("*"))
        add(inside, "no retained checkpoint or savepoint names it", before)
        if any(each.is_dir() for each in inside):
            found.unseen.append(f"the folders in {job / name}: a running task may still write to a file in them")
    for folder in folders:
        if folder.complete:
            continue
        if (folder.number or 0) < (newest.number or 0):
            # A checkpoint that completes ends those before it (CheckpointCoordinator.dropSubsumedCheckpoints).
            add(folder.path.rglob("*"), f"{folder.name} was not completed, and {newest.name} was", since)
        else:
            found.unseen.append(f"{folder.path} is not complete: a running job may be writing it")
