"""The project's own programs, started by a lab as separate processes: a SIGKILL needs a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from faultline.command import CommandError
from faultline.settings import DISK, ROOT, as_environment
from faultline.stack.processes import Program
from labs.frame.broker import Broker
from labs.frame.folder import LabFolder

LIMIT_SECONDS = 120.0


def environment(folder: LabFolder, broker: Broker) -> dict[str, str]:
    """Return the settings with which the project's programs use the lab's folder and its broker."""
    # Any free port for its UI: the stack's own synchronizer may run. And none of the stack's workers, nor its store.
    own = {"HOME": str(folder.root), "SPARK_UI_PORT": "0", "SPARK_ARGS": "", "SPARK_WORKERS": "0", "DATA": DISK}
    return broker.environ | as_environment(own)


def program(command: list[str], environ: dict[str, str], log: Path) -> Program:
    """Start a program; used in a `with` block, which ends all of its processes."""
    return Program(command, os.environ | environ, log, ROOT)


def generate(total: int, *flags: str, environ: Mapping[str, str] | None = None) -> str:
    """Let the generator make `total` visits, and return what it prints. Raises CommandError when it fails."""
    command = [sys.executable, "-m", "generator", "--total", str(total), *flags]
    environ = {**os.environ, **(environ or {})}
    done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"the generator failed: {''.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout
