"""Messages for people, on stderr: stdout carries results only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def say(message: str) -> None:
    """Print a message, or give it to `heard`. A closed stderr does not stop the program."""
    lines = _heard.get()
    if lines is not None:
        lines += message.splitlines()
        return
    try:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    except OSError:
        return


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what this thread says in the block, and what its commands say on stderr, instead of printing it."""
    lines: list[str] = []
    before = _heard.set(lines)
    try:
        yield lines
    finally:
        _heard.reset(before)


def listening() -> bool:
    """Return whether messages are collected now."""
    return _heard.get() is not None
