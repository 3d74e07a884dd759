"""Runs the program that prints the retained checkpoints, ends it when nobody looks, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

STOP = "stop"
"""The program ends when this file is in its folder."""
_LOOK_SECONDS = 0.5
_END_SECONDS = 8.0
_KILL_SECONDS = 2.0


def run(
    command: Sequence[str], folder: Path, goes_on: Callable[[], bool], take: Callable[[dict[str, Any]], None]
) -> None:
    """Hand each line of JSON to `take` until the program ends, or nobody needs it any more."""
    # A session of its own: what it starts ends with it.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    reader = threading.Thread(target=_read, args=(process.stdout, take), daemon=True)
    reader.start()
    try:
        while process.poll() is None and goes_on():
            time.sleep(_LOOK_SECONDS)
        (folder / STOP).touch()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_END_SECONDS)
    finally:
        _end(process)
        # Something may still hold its output open.
        reader.join(timeout=_KILL_SECONDS)


def _read(lines: IO[str], take: Callable[[dict[str, Any]], None]) -> None:
    with lines:
        for line in lines:
            with contextlib.suppress(ValueError, KeyError):
                take(json.loads(line))


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and everything that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_KILL_SECONDS)
