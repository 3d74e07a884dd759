"""Files for a file source: each with its own modification time, and never visible half written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_FIRST = 1_767_225_600  # 2026-01-01T00:00:00Z


def put(path: Path, lines: Iterable[str], second: int) -> None:
    """Write the lines, with a modification time `second` seconds after the first file.

    Spark takes files by their age: with times a second apart, batch N is file N.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written outside the folder and moved in: the source must never see half a file.
    unfinished = path.parent.with_name(f"{path.name}.unfinished")
    unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(unfinished, (_FIRST + second, _FIRST + second))
    unfinished.replace(path)
