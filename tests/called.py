"""A program called in this process, which costs a tenth of a process of its own."""

from __future__ import annotations

import contextlib
import io
import subprocess
from collections.abc import Callable


def call(main: Callable[[list[str]], int], *words: str) -> subprocess.CompletedProcess[str]:
    """Its exit code and what it printed, as from a process."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            code = main(list(words))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    return subprocess.CompletedProcess(words, code, printed.getvalue(), said.getvalue())
