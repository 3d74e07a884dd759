"""Writes every finding: a file of JSON lines for each pipeline and category."""

from __future__ import annotations

import json
from pathlib import Path

from verdict.model import CATEGORIES, Judgement, Unknown


def dump(folder: Path, judgement: Judgement) -> None:
    """Write `<pipeline>.<category>.jsonl` for each category; an empty file means no findings.

    Raises Unknown when the folder cannot be written.
    """
    pipeline = judgement.verdict.pipeline
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for category in CATEGORIES:
            with (folder / f"{pipeline}.{category}.jsonl").open("w", encoding="utf-8") as file:
                for finding in judgement.findings(category):
                    # ASCII: half a surrogate pair in a visit_id cannot be written in UTF-8.
                    file.write(json.dumps(finding.as_json()) + "\n")
    except OSError as error:
        raise Unknown(f"--dump {folder} cannot be written: {error.strerror}; choose another folder") from None
