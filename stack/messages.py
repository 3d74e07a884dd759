"""Messages for people, on stderr: stdout carries results only."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Print a message. A reader that has gone away is no reason to stop."""
    try:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    except OSError:
        return
