"""Commands run in the foreground for a person: they handle a Ctrl-C, and this program waits for them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from faultline.stop import ENDING


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
    """While the block runs: a Ctrl-C reaches the command through the terminal, other signals are passed on.

    Raises KeyboardInterrupt after the block when the command has failed after one: whatever waits for the command must
    not go on without it.
    """
    received: list[int] = []

    def hand_on(number: int, _frame: Any) -> None:
        received.append(number)
        if number != signal.SIGINT and process.poll() is None:
            process.send_signal(number)

    # Not SIG_IGN, which commands would inherit; a clean-up ignores signals, and so does what it waits for.
    before = {number: signal.getsignal(number) for number in ENDING}
    heard = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in heard:
        signal.signal(number, hand_on)
    try:
        yield
    finally:
        for number, handler in heard.items():
            signal.signal(number, handler)
    if received and process.returncode:
        raise KeyboardInterrupt(received[0])
