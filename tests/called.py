"""A program called in this process, which costs a tenth of a process of its own."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable

from faultline.command import CommandError


def call(main: Callable[[list[str]], int], *words: str) -> subprocess.CompletedProcess[str]:
    """Its exit code and what it printed, as from a process; before its error a process prints its name."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            code = main(list(words))
        except CommandError as error:
            print(error, file=sys.stderr)
            code = error.code
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return subprocess.CompletedProcess(words, code, printed.getvalue(), said.getvalue())
