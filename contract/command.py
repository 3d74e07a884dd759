"""How every program of the project answers a user's mistake: one line on stderr, exit code 2, no traceback."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn


def fail(name: str, message: object) -> NoReturn:
    """End with `name: message` and exit code 2."""
    sys.stderr.write(f"{name}: {message}\n")
    sys.exit(2)


class Flags(argparse.ArgumentParser):
    """A parser whose errors are one line that begins with `name`, like the program's other messages.

    Flags are not abbreviated: a script that abbreviates breaks when a flag is added.
    """

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._name = name

    def error(self, message: str) -> NoReturn:
        """End with the message and a hint at --help."""
        fail(self._name, f"{message}; --help lists the flags")
