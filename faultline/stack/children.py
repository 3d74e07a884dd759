"""Commands run in the foreground for a person: they handle a Ctrl-C, and this program waits for them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from faultline.messages import listening, say
from faultline.stop import ENDING

STDERR = 2
"""The stdout of a command whose results are messages."""


def run_child(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    folder: Path | None = None,
    stdin: int | None = None,
    stdout: int | IO[str] | None = None,
    quiet: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its stderr is dropped when `quiet`, and collected where messages are.

    Returns its exit code as a shell would give it, and its stdout where that is a pipe.
    Raises FileNotFoundError or PermissionError when it cannot be started.
    """
    collects = listening()
    prints = stdout in (None, STDERR)
    process = subprocess.Popen(
        list(words), env=dict(environ), cwd=folder, stdin=stdin, text=True, errors="replace",
        stdout=subprocess.PIPE if collects and prints else stdout,
        stderr=subprocess.DEVNULL if quiet else subprocess.PIPE if collects else None,
        # A terminal's Ctrl-C does not reach it there, so that it gets just one.
        start_new_session=collects,
    )  # fmt: skip
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    reader.start()
    with waiting_for(process):
        output = process.stdout.read() if process.stdout else ""
        code = process.wait()
    reader.join()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()
    if collects and prints:
        said, output = [*said, output], ""
    if words_of_it := "".join(said).strip():
        say(words_of_it)
    return subprocess.CompletedProcess(list(words), code if code >= 0 else 128 - code, output)


def is_beside() -> bool:
    """Return whether this thread is beside the main one: a Ctrl-C at the terminal is not for its commands."""
    return threading.current_thread() is not threading.main_thread()


@contextlib.contextmanager
def waiting_for(process: subprocess.Popen[str]) -> Iterator[None]:
    """While the block runs: a Ctrl-C reaches the command through the terminal, other signals are passed on.

    Raises KeyboardInterrupt after the block when the command has failed after one: whatever waits for the command must
    not go on without it. Where messages are collected, every signal is passed on, and a command that succeeds does not
    hide one. A thread beside the main one leaves signals to that.
    """
    if is_beside():
        yield
        return
    collects = listening()
    received: list[int] = []

    def hand_on(number: int, _frame: Any) -> None:
        received.append(number)
        if process.poll() is None and (collects or number != signal.SIGINT):
            if collects:
                os.killpg(process.pid, number)
            else:
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
    if received and (process.returncode or collects):
        # As after the first signal that the program itself has received: later ones do not interrupt the clean-up.
        for number in heard if collects else ():
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt(received[0])
