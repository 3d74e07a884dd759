"""How many lines the synchronizer's file sink has written for a batch, by the sink's own log."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

SINK_LOG = "_spark_metadata"


def lines_of(output: Path, batch: int) -> int:
    """Count the lines in the files of a batch; a compacted log also names those of earlier batches."""
    log = output / SINK_LOG
    own = _names(log / str(batch))
    if own is None:
        before = [_names(file) or [] for file in log.iterdir() if file.stem.isdigit() and int(file.stem) < batch]
        own = [name for name in _names(log / f"{batch}.compact") or [] if not any(name in names for names in before)]
    return sum((output / name).read_bytes().count(b"\n") for name in own)


def _names(file: Path) -> list[str] | None:
    """Names of the files in a file of the log: a line `v1`, then one JSON object a line. None when it is not there."""
    if not file.exists():
        return None
    entries = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    return [PurePosixPath(unquote(urlsplit(each["path"]).path)).name for each in entries]
