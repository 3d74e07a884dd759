"""Writes every finding: a file of JSON lines for each pipeline and category."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable
from pathlib import Path

from faultline.formats.verdict import CATEGORIES
from faultline.verdict.model import Judgement


def clear(folder: Path, pipelines: Iterable[str]) -> None:
    """Make the folder, and remove the findings of an earlier run about these pipelines. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for pipeline in pipelines:
        for category in CATEGORIES:
            _file(folder, pipeline, category).unlink(missing_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def dump(folder: Path, judgement: Judgement) -> None:
    """Write `<pipeline>.<category>.jsonl` for each category; an empty file means no findings. Raises OSError."""
    for category in CATEGORIES:
        with _file(folder, judgement.verdict.pipeline, category).open("w", encoding="utf-8") as file:
            for finding in judgement.findings(category):
                # ASCII: half a surrogate pair in a visit_id cannot be written in UTF-8.
                file.write(json.dumps(finding.as_json()) + "\n")


def _file(folder: Path, pipeline: str, category: str) -> Path:
    return folder / f"{pipeline}.{category}.jsonl"
