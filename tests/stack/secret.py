"""A secret that nobody may show: no other file, and no process on its command line or in its variables."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil


def has_secret(file: Path, secret: str) -> bool:
    """Return whether a file has the secret. One that a running service has removed meanwhile has none."""
    try:
        return secret.encode() in file.read_bytes()
    except FileNotFoundError:
        return False


def require_in_no_process(secret: str) -> None:
    """Fail when any process of this machine shows the secret, except this one."""
    for process in psutil.process_iter():
        if process.pid != os.getpid():
            # Everyone can read a command line, only the same user the variables.
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                assert not any(secret in each for each in process.cmdline()), process.name()
                assert not any(secret in each for each in process.environ().values()), process.name()
