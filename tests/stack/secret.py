"""A secret that no process may show: not on its command line, and not in its variables."""

from __future__ import annotations

import os

import psutil


def require_in_no_process(secret: str) -> None:
    """Fail when any process of this machine shows the secret, except this one."""
    for process in psutil.process_iter():
        if process.pid != os.getpid():
            try:
                shown = [*process.cmdline(), *process.environ().values()]
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            assert not any(secret in each for each in shown), process.name()
