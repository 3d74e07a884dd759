"""The folders below a Flink checkpoint directory: which are there, which can be restored. No JVM.

`state.checkpoints.dir` holds `<job id>/chk-N/_metadata`; `flink savepoint` leaves
`savepoint-<short job id>-<random>/_metadata` in the folder that its caller names. Flink writes `_metadata` last,
under another name until it is whole, so a folder without it is a checkpoint that is not, or not yet, complete
(https://nightlies.apache.org/flink/flink-docs-release-2.2/docs/ops/state/checkpoints/#directory-structure).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from faultline.inspector.errors import InspectorError, NothingToRestore
from faultline.settings import Settings
from faultline.storage.location import Location
from faultline.storage.reading import changed_at
from faultline.storage.words import is_uri, location_of

METADATA = "_metadata"
PARQUET_MAGIC = b"PAR1"
"""The first bytes of the summary that writers of Parquet put beside their files, under the name of METADATA."""
CHECKPOINT = re.compile(r"chk-(\d+)")
SAVEPOINT = re.compile(r"savepoint-.+")
LATEST = "latest"
"""The word for the newest checkpoint that can be restored."""
JOB_ID = re.compile(r"[0-9a-f]{32}")
LISTED = 10
"""The largest number of checkpoints that a refusal names."""
DEPTH = 3
"""`<job id>/chk-N` is two levels below the directory; a folder for savepoints may add one."""


@dataclass(frozen=True)
class CheckpointFolder:
    """One chk-N or savepoint folder.

    `completed_at` is the modification time of `_metadata` in seconds since the epoch (None: not complete);
    `changed_at` that of the folder; `size` counts bytes of the folder's own files, not of `shared/`.
    """

    path: Location
    job_id: str
    name: str
    number: int | None
    complete: bool
    reason: str
    completed_at: float | None
    changed_at: float
    size: int
    readable: bool = True
    """True when this user may read it; one that is not readable may still be complete."""

    @property
    def closed(self) -> str | None:
        """The sentence for one that this user may not read."""
        return None if self.readable else f"{self.path}: {self.reason}; ask its owner, or run as that user"

    @property
    def is_savepoint(self) -> bool:
        """True when a user asked for it (savepoint) rather than the checkpoint interval."""
        return SAVEPOINT.fullmatch(self.name) is not None


def _children(folder: Location) -> list[Location]:
    """Subfolders; none when the folder was removed meanwhile, for instance by retention."""
    try:
        return sorted(child for child in folder.iterdir() if child.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_checkpoint_folder(path: Location) -> bool:
    """Return whether the name, or a `_metadata` inside, says that this is one checkpoint or savepoint.

    A folder may have such a name and hold some: `savepoint-archive`, or a `chk-5` that `cp -r` put into another one.
    """
    if not (CHECKPOINT.fullmatch(path.name) or SAVEPOINT.fullmatch(path.name)):
        return (path / METADATA).is_file() and not begins_with(path / METADATA, PARQUET_MAGIC)
    with contextlib.suppress(PermissionError):
        return (path / METADATA).is_file() or not any((child / METADATA).is_file() for child in _children(path))
    return True


def begins_with(file: Location, magic: bytes) -> bool:
    """Return whether the file's first bytes are these; False when it cannot be read."""
    try:
        with file.open("rb") as content:
            return content.read(len(magic)) == magic
    except OSError:
        return False


def read_folder(path: Location) -> CheckpointFolder | None:
    """Look at one folder; None when it was removed meanwhile."""
    number = CHECKPOINT.fullmatch(path.name)
    job_id = path.parent.name if JOB_ID.fullmatch(path.parent.name) else ""
    try:
        files = []
        for child in path.iterdir():
            # It may be renamed meanwhile: `_metadata` has another name while it is written.
            with contextlib.suppress(FileNotFoundError):
                files.append((child, child.stat()))
        changed = changed_at(path, (status for _, status in files))
    except FileNotFoundError:
        return None
    except PermissionError:
        reason = "no permission to read the folder"
        return CheckpointFolder(path, job_id, path.name, _number(number), False, reason, None, 0.0, 0, readable=False)
    size = sum(status.st_size for child, status in files if child.is_file())
    metadata = next((status for child, status in files if child.name == METADATA), None)
    readable = metadata is None or S_ISDIR(metadata.st_mode) or _is_readable(path / METADATA)
    other = next((child.name for child, _ in files if child.name.lower() == METADATA), METADATA)
    if metadata is None and other != METADATA:
        reason = f"it has {other}, and Flink finds {METADATA} alone: rename it"
    elif metadata is None:
        reason = f"no {METADATA}: still being written, aborted or cut off; not a checkpoint"
    elif S_ISDIR(metadata.st_mode):
        reason = f"{METADATA} is a folder"
    elif metadata.st_size == 0:
        reason = f"{METADATA} is empty"
    elif not readable:
        reason = f"no permission to read {METADATA}"
    else:
        reason = ""
    completed_at = metadata.st_mtime if metadata is not None and not reason else None
    return CheckpointFolder(
        path, job_id, path.name, _number(number), not reason, reason, completed_at, changed, size, readable
    )


def _is_readable(file: Location) -> bool:
    try:
        file.open("rb").close()
    except PermissionError:
        return False
    except FileNotFoundError:
        # Retention removed it meanwhile; the next reader reports that.
        return True
    return True


def _number(match: re.Match[str] | None) -> int | None:
    return int(match[1]) if match else None


def _walk(folder: Location, depth: int, closed: list[str] | None) -> Iterator[Location]:
    try:
        is_one = is_checkpoint_folder(folder)
        children = _children(folder) if depth > 0 and not is_one else []
    except PermissionError:
        sentence = f"{folder} cannot be read: no permission; ask its owner, or run as that user"
        if closed is None:
            raise InspectorError(sentence) from None
        closed.append(sentence)
        return
    if is_one:
        yield folder
    for child in children:
        yield from _walk(child, depth - 1, closed)


def list_folders(root: Location, closed: list[str] | None = None) -> list[CheckpointFolder]:
    """All checkpoints and savepoints below `root`, newest last.

    Checkpoints of one job are ordered by number, since a copied folder has the times of the copy; jobs by their newest
    completed checkpoint, savepoints by their own time, and what has no complete one by its last change.
    Each folder on the way that cannot be read adds a sentence to `closed`; without `closed` the first one raises
    InspectorError, since the newest checkpoint may be in there.
    """
    found = [read_folder(path) for path in _walk(root, DEPTH, closed)]
    present = [folder for folder in found if folder is not None]
    times: dict[str, float] = {}
    for folder in present:
        if folder.number is not None:
            run = str(folder.path.parent)
            times[run] = max(times.get(run, 0.0), folder.completed_at or 0.0)

    def age(folder: CheckpointFolder) -> tuple[float, int]:
        of_run = times[str(folder.path.parent)] if folder.number is not None else folder.completed_at
        return of_run or folder.changed_at, folder.number or 0

    return sorted(present, key=age)


def _restorable(folders: list[CheckpointFolder]) -> str:
    names = [f"  {folder.job_id or '-'}/{folder.name}" for folder in folders if folder.complete]
    if not names:
        return "none can be restored"
    older = len(names) - LISTED
    head = "can be restored, newest last" + (f", after {older} older ones" if older > 0 else "")
    return "\n".join([f"{head}:", *names[-LISTED:]])


def resolve(which: str, root: Location) -> Location:
    """Find the absolute folder of `latest`, of `chk-N` (newest of that number) or of a path, if it can be restored.

    A path may name the folder or its `_metadata`, from here or from `root`.
    Raises NothingToRestore for `latest` when there is none, else InspectorError with what can be restored.
    """
    folders = list_folders(root) if root.is_dir() else []
    complete = [folder for folder in folders if folder.complete]
    if which == LATEST:
        for folder in reversed(folders):
            # This may be the newest one: a restore from an older one would repeat what was committed since.
            if folder.closed:
                raise InspectorError(folder.closed)
        if not complete:
            raise NothingToRestore(f"no complete checkpoint below {root}; scripts/flink_submit.sh starts without one")
        return complete[-1].path.resolve()
    if CHECKPOINT.fullmatch(which) and not Path(which).is_dir():
        candidates = [folder for folder in folders if folder.name == which]
        restorable = [folder for folder in candidates if folder.complete]
        if restorable:
            return restorable[-1].path.resolve()
        facts = [f"{folder.path} cannot be restored: {folder.reason}" for folder in candidates]
        raise InspectorError("\n".join([*(facts or [f"{which} does not exist below {root}"]), _restorable(folders)]))
    return _resolve_path(which, root, folders)


def _resolve_path(which: str, root: Location, folders: list[CheckpointFolder]) -> Location:
    path = location_of(which, Settings()) if is_uri(which) else Path(which)
    if not path.exists() and not path.is_absolute() and (root / which).exists():
        path = root / which
    if path.name == METADATA:
        path = path.parent
    if not path.is_dir():
        raise InspectorError(f"{path} does not exist or is not a folder\n{_restorable(folders)}")
    folder = read_folder(path)
    if folder is None or not folder.complete:
        reason = folder.reason if folder else "it went away while it was read"
        raise InspectorError(f"{path} cannot be restored: {reason}\n{_restorable(folders)}")
    return path.resolve()
