"""Messages for people, on stderr: stdout carries results only."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Print a message. A closed stderr does not stop the program."""
    try:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    except OSError:
        return
