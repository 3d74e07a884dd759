"""Recognition of the engine that wrote a path, and of the checkpoint that a path near it means."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import (
    CHECKPOINT,
    JOB_ID,
    METADATA,
    begins_with,
    is_checkpoint_folder,
    list_folders,
)
from faultline.inspector.spark.report import LOGS, is_spark_checkpoint
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location

DEPTH, MOST_FOLDERS, MOST_FILES, NAMED = 6, 2_000, 100, 5
"""Levels around, folders and files below a path that are searched for checkpoints, and how many a sentence names."""
INSIDE_SPARK = (*LOGS, "sources", "state")
INSIDE_FLINK = ("shared", "taskowned")
"""Folders of a checkpoint, and of a job, that somebody may name instead of it."""
FLINK_MAGIC = bytes.fromhex("4960672d")
"""The first bytes of Flink's metadata, whatever its name (Checkpoints.HEADER_MAGIC_NUMBER)."""
BESIDE_FLINK = {
    r"(completedCheckpoint|submittedJobGraph|executionPlan).*": (
        "is Flink's high-availability storage, which only points to checkpoints"
    ),
    r"localState|aid_.+|jid_.+|vtx_.+|chk_\d+": "has the copies that a TaskManager keeps of its own state",
    r"_(common_)?metadata": "is output in Parquet, whose summary has the name of Flink's metadata",
    r"dstl": "has changes of the changelog state backend, which only a checkpoint puts together",
}
"""Names that Flink gives to what somebody may take for a checkpoint, and what they mean."""


def engine_of(path: Location) -> str:
    """`spark` or `flink`.

    Raises InspectorError when the path does not exist, cannot be read, or is no checkpoint of either.
    """
    try:
        return _engine_of(path)
    except PermissionError as error:
        on_disk = isinstance(path, Path)
        why = "no permission; ask its owner, or run as that user" if on_disk else error.strerror
        raise InspectorError(f"{error.filename} cannot be read: {why}") from None
    except OSError as error:
        raise InspectorError(f"{error.filename} cannot be read: {error.strerror}") from None


def _engine_of(path: Location) -> str:
    if not path.exists():
        near = _checkpoints_below(path.parent, 2) if path.parent.is_dir() else []
        raise InspectorError(f"{path} does not exist{_give(near)}")
    if path.name == METADATA and path.is_file() and is_checkpoint_folder(path.parent):
        return "flink"
    if not path.is_dir():
        raise InspectorError(_a_file(path))
    children = sorted(path.iterdir())
    if is_spark_checkpoint(path):
        return "spark"
    closed: list[str] = []
    if is_checkpoint_folder(path) or list_folders(path, closed):
        return "flink"
    if closed:
        raise InspectorError(closed[0])
    raise InspectorError(_why_none(path, children))


def _a_file(path: Location) -> str:
    owner = _owner(path.parent)
    if owner is None and path.name == "metadata" and is_spark_checkpoint(path.parent):
        owner = path.parent
    if owner is None and is_checkpoint_folder(path.parent):
        owner = path.parent
    if begins_with(path, FLINK_MAGIC):
        return (
            f"{path} has the content of Flink's {METADATA}: Flink restores it by this name, too; rename it to"
            f" {METADATA} to open it here"
        )
    if owner is None and path.parent.name == SINK_LOG:
        return _called_like_one(path.parent, set())
    give = _give([owner]) if owner is not None else "; name the folder of a query, a job or a chk-N"
    return f"{path} is a file{give}"


def _why_none(path: Location, children: list[Location]) -> str:
    owner = _owner(path)
    if owner is not None:
        return f"{path} is a part of a checkpoint{_give([owner])}"
    if not children:
        return f"{path} is empty: not a checkpoint (yet)"
    return (
        _called_like_one(path, {child.name for child in children})
        or _has_some(path, children)
        or _beside_flink(path, children)
        or f"{path} is not a checkpoint: it has neither offsets/ and commits/ (Spark) nor chk-N or _metadata (Flink)"
    )


def _called_like_one(path: Location, names: set[str]) -> str:
    """Say what a folder is that has only a part of a checkpoint; empty when it has none."""
    others = [name for name in names if name not in LOGS and name.lower() in LOGS]
    if others:
        return (
            f"{path} has {', '.join(sorted(others))}: Spark's logs are called {' and '.join(LOGS)}, in small letters,"
            " and without them Spark begins a new checkpoint; rename them, then open this folder again"
        )
    flink = [name for name in names if name.lower() == METADATA != name or CHECKPOINT.fullmatch(name.lower())]
    if flink:
        return (
            f"{path} has {', '.join(sorted(flink))}: Flink calls it {METADATA} or chk-N, in small letters, and finds it"
            " by no other name; rename it, then open this folder again"
        )
    if any(name in names for name in INSIDE_FLINK):
        return _only_shared(path)
    if path.name == SINK_LOG or SINK_LOG in names:
        return (
            f"{path} is {'the log in ' if path.name == SINK_LOG else ''}the output of Spark's file sink, and no"
            " checkpoint: name the query's checkpoint location, and give this output by --sink"
        )
    if "metadata" in names and _is_query_metadata(path / "metadata"):
        return (
            f"{path} has only the metadata of a Spark query, and none of its logs ({', '.join(LOGS)}): nothing was"
            " planned yet, or they were not copied; name the folder that has them"
        )
    return ""


def _beside_flink(path: Location, children: list[Location]) -> str:
    """Say what a folder is in which Flink keeps something else; empty when it is none."""
    renamed = next(
        (child for child in children[:MOST_FILES] if child.is_file() and begins_with(child, FLINK_MAGIC)), None
    )
    if renamed is not None:
        return _a_file(renamed)
    for pattern, what in BESIDE_FLINK.items():
        if any(re.fullmatch(pattern, name) for name in (path.name, *(child.name for child in children))):
            return f"{path} {what}; name the folder of state.checkpoints.dir, a chk-N in it, or a savepoint"
    return ""


def _has_some(path: Location, children: list[Location]) -> str:
    """Say which checkpoints are below a folder; empty when none is."""
    below = _checkpoints_below(path, DEPTH)
    queries = [child.name for child in children if child in below and is_spark_checkpoint(child)]
    if queries:
        return f"{path} holds the checkpoints of queries and is none itself; name one of: {', '.join(queries)}"
    if below:
        return f"{path} is not a checkpoint, and there are some below it{_give(below)}"
    alone = [child for child in children if child.is_dir() and any((child / name).is_dir() for name in INSIDE_FLINK)]
    if alone:
        return _only_shared(alone[0])
    return ""


def _only_shared(path: Location) -> str:
    return (
        f"{path} is the folder of a Flink job{f' ({path.name})' if JOB_ID.fullmatch(path.name) else ''} with"
        " shared/ or taskowned/ and without any chk-N: nothing can be restored from these alone; name the folder that"
        " has the job's chk-N, or a savepoint"
    )


def _owner(path: Location) -> Location | None:
    """The checkpoint or job that a folder inside it belongs to; None for a folder that is not called like one."""
    here = path
    for _ in range(DEPTH):
        parent = here.parent
        if here.name in INSIDE_SPARK and is_spark_checkpoint(parent):
            return parent
        if here.name in INSIDE_FLINK and any(CHECKPOINT.fullmatch(each.name) for each in parent.iterdir()):
            return parent
        here = parent
    return None


def _is_query_metadata(file: Location) -> bool:
    try:
        return isinstance(json.loads(file.read_bytes()), dict)
    except (OSError, ValueError, RecursionError):
        return False


def _checkpoints_below(path: Location, depth: int) -> list[Location]:
    """The checkpoints of queries, and the folders of Flink's jobs and savepoints, nearest first."""
    found: list[Location] = []
    for folder in _folders_below(path, depth):
        if is_spark_checkpoint(folder):
            found.append(folder)
        elif is_checkpoint_folder(folder):
            of_a_job = CHECKPOINT.fullmatch(folder.name) and JOB_ID.fullmatch(folder.parent.name)
            named = folder.parent if of_a_job else folder
            if named not in found:
                found.append(named)
        if len(found) > NAMED:
            break
    return found


def _folders_below(path: Location, depth: int) -> Iterator[Location]:
    level, seen = [path], 0
    for _ in range(depth):
        following: list[Location] = []
        for folder in level:
            try:
                children = sorted(each for each in folder.iterdir() if each.is_dir())
            except OSError:
                continue
            for child in children:
                seen += 1
                if seen > MOST_FOLDERS:
                    return
                yield child
                if not (is_spark_checkpoint(child) or is_checkpoint_folder(child)):
                    following.append(child)
        level = following


def _give(near: list[Location]) -> str:
    if not near:
        return ""
    more = " and others" if len(near) > NAMED else ""
    return f"; name {'this one' if len(near) == 1 else 'one of these'}: {', '.join(map(str, near[:NAMED]))}{more}"
