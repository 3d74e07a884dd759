"""Files that are replaced as a whole: a reader sees the old content or the new one, and a full disk leaves the old."""

from __future__ import annotations

import os
from pathlib import Path


def replace_text(file: Path, text: str, *, private: bool = False) -> None:
    """Write a file at once, in a folder that exists. Raises OSError.

    `private`: only its owner may read it, from its first byte on.
    """
    temporary = file.with_name(file.name + ".new")
    # One that an interrupted write left may have wider permissions.
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(temporary, flags, 0o600 if private else 0o666), "w", encoding="utf-8") as stream:
        stream.write(text)
    temporary.replace(file)
