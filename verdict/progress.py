"""Progress of a long read, on stderr: a line that rewrites itself on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self


class Progress:
    """Counts towards a total and prints it regularly; use it as a context manager."""

    def __init__(self, label: str, total: int, unit: str = "records") -> None:
        self._label, self._total, self._unit = label, total, unit
        self._done = 0
        self._terminal = sys.stderr.isatty()
        self._interval_seconds = 0.2 if self._terminal else 10.0
        self._next = time.monotonic() + self._interval_seconds
        self._shown = False

    def advance(self, count: int) -> None:
        """Add to the count."""
        self._done += count
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._interval_seconds
            self._shown = True
            text = f"{self._label}: {self._done:,} of {self._total:,} {self._unit}"
            sys.stderr.write(f"\r\033[K{text}" if self._terminal else f"{text}\n")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and self._terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
