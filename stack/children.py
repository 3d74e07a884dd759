"""Commands run in the foreground for a person: they handle a Ctrl-C, and this program waits for them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any


def run_child(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    folder: Path | None = None,
    stdin: int | None = None,
    stdout: int | IO[str] | None = None,
    quiet: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its stderr is dropped when `quiet`.

    Returns its exit code as a shell would give it, and its stdout where that is a pipe.
    Raises FileNotFoundError or PermissionError when it cannot be started.
    """
    process = subprocess.Popen(
        list(words), env=dict(environ), cwd=folder, stdin=stdin, stdout=stdout, text=True, errors="replace",
        stderr=subprocess.DEVNULL if quiet else None,
    )  # fmt: skip
    with waiting_for(process):
        output = process.stdout.read() if process.stdout else ""
        code = process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    return subprocess.CompletedProcess(list(words), code if code >= 0 else 128 - code, output)


@contextlib.contextmanager
def waiting_for(process: subprocess.Popen[str]) -> Iterator[None]:
    """While the block runs: a Ctrl-C reaches the command through the terminal, a SIGTERM is passed on."""

    def hand_on(number: int, _frame: Any) -> None:
        if process.poll() is None:
            process.send_signal(number)

    # Not SIG_IGN, which commands would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None), signal.signal(signal.SIGTERM, hand_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
