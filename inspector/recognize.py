"""Which engine wrote a path."""

from __future__ import annotations

import os
from pathlib import Path

from inspector.errors import InspectorError
from inspector.flink.folder import CHECKPOINT, METADATA, is_checkpoint_folder, list_folders
from inspector.spark.report import is_spark_checkpoint


def engine_of(path: Path) -> str:
    """`spark` or `flink`.

    Raises InspectorError when the path does not exist, cannot be read, or is no checkpoint of either.
    """
    if not path.exists():
        raise InspectorError(f"{path} does not exist")
    if path.name == METADATA and path.is_file():
        return "flink"
    if not path.is_dir():
        raise InspectorError(f"{path} is a file; name the folder of a query, a job or a chk-N")
    if not os.access(path, os.R_OK | os.X_OK):
        raise InspectorError(f"{path} cannot be read: no permission; ask its owner, or run as that user")
    if is_spark_checkpoint(path):
        return "spark"
    if is_checkpoint_folder(path) or list_folders(path):
        return "flink"
    children = sorted(child for child in path.iterdir() if child.is_dir())
    queries = [child for child in children if is_spark_checkpoint(child)]
    if queries:
        names = ", ".join(child.name for child in queries)
        raise InspectorError(f"{path} holds the checkpoints of several queries; name one of: {names}")
    if not any(path.iterdir()):
        raise InspectorError(f"{path} is empty: not a checkpoint (yet)")
    if (path / "shared").is_dir() or CHECKPOINT.search(path.name):
        raise InspectorError(f"{path} is a job's folder without any chk-N: nothing can be restored from it")
    raise InspectorError(
        f"{path} is not a checkpoint: it has neither offsets/ and commits/ (Spark) nor chk-N or _metadata (Flink)"
    )
