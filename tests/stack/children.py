"""Processes that end with the test that starts them, also when it fails."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from typing import Protocol

import pytest


class Spawn(Protocol):
    """Starts a command whose output can be read."""

    def __call__(self, command: list[str], environ: dict[str, str]) -> subprocess.Popen[str]: ...


def tied(*command: str) -> list[str]:
    """Return a command that the kernel kills when this process ends, however it ends; on Linux only."""
    setpriv = shutil.which("setpriv")
    return [*([setpriv, "--pdeathsig", "KILL"] if setpriv else []), *command]


@contextlib.contextmanager
def hearing_hangups() -> Iterator[None]:
    """Let what is started in the block be ended by SIGHUP, also in a run under nohup, which ignores that signal."""
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, inherited)


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start processes; what still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(command: list[str], environ: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        # Closes its pipes and waits for its end.
        with process:
            pass


@contextlib.contextmanager
def ended_with_its_group(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill what is left of a process in a session of its own, and of all that it has started there."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with process:
            pass
