"""Locks between processes: one holder at a time, and a lock ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from faultline.messages import say


@contextlib.contextmanager
def exclusive(path: Path, waiting: str | None) -> Iterator[None]:
    """Lock a file, or a folder that exists, while the block runs. A missing file is created.

    When another process holds the lock: prints `waiting` and waits, or raises BlockingIOError when `waiting` is None.
    """
    mode = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, mode | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise
            say(waiting)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
