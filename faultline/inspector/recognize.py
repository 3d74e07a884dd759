"""Recognition of the engine that wrote a path."""

from __future__ import annotations

from pathlib import Path

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import METADATA, is_checkpoint_folder, list_folders
from faultline.inspector.spark.report import is_spark_checkpoint
from faultline.storage.place import Place


def engine_of(path: Place) -> str:
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


def _engine_of(path: Place) -> str:
    if not path.exists():
        raise InspectorError(f"{path} does not exist")
    if path.name == METADATA and path.is_file():
        return "flink"
    if not path.is_dir():
        raise InspectorError(f"{path} is a file; name the folder of a query, a job or a chk-N")
    children = sorted(path.iterdir())
    if is_spark_checkpoint(path):
        return "spark"
    closed: list[str] = []
    if is_checkpoint_folder(path) or list_folders(path, closed):
        return "flink"
    if closed:
        raise InspectorError(closed[0])
    raise InspectorError(_why_none(path, children))


def _why_none(path: Place, children: list[Place]) -> str:
    if not children:
        return f"{path} is empty: not a checkpoint (yet)"
    queries = [child.name for child in children if child.is_dir() and is_spark_checkpoint(child)]
    if queries:
        return f"{path} holds the checkpoints of queries and is none itself; name one of: {', '.join(queries)}"
    if (path / "shared").is_dir():
        return f"{path} is a job's folder without any chk-N: nothing can be restored from it"
    return f"{path} is not a checkpoint: it has neither offsets/ and commits/ (Spark) nor chk-N or _metadata (Flink)"
