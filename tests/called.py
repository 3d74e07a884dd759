"""Programs that tests run: called in this process, which costs a tenth of a process of its own, or as a process."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from faultline.command import CommandError
from faultline.settings import ROOT


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


def refused(main: Callable[[list[str]], object], *words: str) -> str:
    """The message of a program that refuses its words, with exit code 2 and nothing on stdout."""

    def run(given: list[str]) -> int:
        main(given)
        return 0

    done = call(run, *words)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def process(
    command: Sequence[str], variables: Mapping[str, str] | None = None, seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command in the clone, with these variables besides those of the tests."""
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(variables or {})}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=seconds,
    )  # fmt: skip


def program(
    module: str, *words: str, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE WORD...`."""
    return process([python, "-m", module, *words], variables)


def script(name: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script of scripts/."""
    return process([str(ROOT / "scripts" / name), *words], variables)
