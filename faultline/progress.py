"""One line of progress on stderr: rewritten in place on a terminal, repeated now and then otherwise."""

from __future__ import annotations

import sys
import time

_TERMINAL_SECONDS = 0.2
_LOG_SECONDS = 10.0


class ProgressLine:
    """Shows the newest state at most every 0.2 s (terminal) or 10 s (anything else)."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._interval = _TERMINAL_SECONDS if self._terminal else _LOG_SECONDS
        self._next = time.monotonic() + self._interval
        self._open_line = False

    def due(self) -> bool:
        """Return whether it is time for the next line."""
        return time.monotonic() >= self._next

    def show(self, line: str) -> None:
        """Print the line now."""
        self._next = time.monotonic() + self._interval
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            self._open_line = True
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    def say(self, line: str) -> None:
        """Print a line that stays, below the progress line."""
        sys.stderr.write(f"{chr(10) if self._open_line else ''}{line}\n")
        sys.stderr.flush()
        self._open_line = False

    def clear(self) -> None:
        """Remove the progress line from a terminal."""
        if self._open_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._open_line = False
