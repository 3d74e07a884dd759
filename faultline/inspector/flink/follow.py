"""Follows the checkpoints of a job: which are retained, and what each holds. Each is opened once, in one JVM."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import CheckpointFolder, list_folders
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.flink.metadata import load_metadata, operators
from faultline.inspector.flink.offsets import all_offsets, by_partition
from faultline.inspector.flink.report import describe, folder_report
from faultline.inspector.render import prose
from faultline.storage.location import Location

ROWS = 5
"""Rows of each state in the words."""


def follow(root: Location, seconds: float, stopped: Callable[[], bool], words: Path | None = None) -> None:
    """Print a line of JSON whenever other checkpoints are retained, until `stopped`: `at`, `checkpoints`.

    Each checkpoint has path, job_id, name, at (ms), bytes, and offsets by partition; or `unknown`, why it has none.
    A folder that could be read, and cannot be read now, is waited for. With `words`, a folder, the inspector's
    sentences on each go to a text file there, such as `<job id>/chk-7.txt`.
    """
    known: dict[Location, dict[str, Any]] = {}
    printed: list[Location] | None = None
    unwritten: list[Location] = []
    with ExitStack() as stack:
        jvm: Any = None
        while not stopped():
            try:
                folders = [folder for folder in _folders(root) if folder.complete]
            except (InspectorError, OSError):
                if printed is None:
                    raise
                # An object store may be gone for a while; what could not be read then may be whole.
                known, printed = {path: each for path, each in known.items() if "unknown" not in each}, []
                time.sleep(seconds)
                continue
            paths = [folder.path for folder in folders]
            new = [path for path in paths if path not in known]
            if new:
                jvm = jvm or stack.enter_context(flink_jvm([root]))
            known = {folder.path: known.get(folder.path) or _read(jvm, folder) for folder in folders}
            if paths != printed:
                print(json.dumps({"at": time.time(), "checkpoints": list(known.values())}), flush=True)
                printed = paths
            unwritten += [] if words is None else new
            if unwritten:
                # One at a time: meanwhile the job deletes checkpoints whose offsets nobody has read yet.
                _write_words(jvm, unwritten.pop(), root, words)
            else:
                time.sleep(seconds)
        while unwritten:
            _write_words(jvm, unwritten.pop(), root, words)


def _folders(root: Location) -> list[CheckpointFolder]:
    # The folder is made by the first job.
    return list_folders(root) if root.is_dir() else []


def _read(jvm: Any, folder: CheckpointFolder) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": str(folder.path), "job_id": folder.job_id, "name": folder.name,
        "at": round((folder.completed_at or 0) * 1000), "bytes": folder.size,
    }  # fmt: skip
    try:
        found["offsets"] = by_partition(all_offsets(jvm, operators(load_metadata(jvm, folder.path))))
    except (InspectorError, OSError) as error:
        found["unknown"] = str(error)
    return found


def _write_words(jvm: Any, path: Location, root: Location, words: Path | None) -> None:
    if words is None:
        return
    target = words / path.relative_to(root)
    try:
        report, folders = folder_report(path)
        describe(jvm, report, folders, ROWS)
        text = prose.render(report)
    except (InspectorError, OSError) as error:
        # The job has deleted it meanwhile, or the object store is gone.
        text = str(error)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name(f"{target.name}.txt").write_text(f"{text}\n", encoding="utf-8")
