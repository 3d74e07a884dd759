"""The project's own programs, started by a lab as separate processes: a SIGKILL needs a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from faultline.settings import DISK, ROOT, as_environment
from faultline.stack.processes import Program
from labs.frame.broker import Broker
from labs.frame.errors import LabError
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


def send_visits(total: int, environ: dict[str, str]) -> None:
    """Send `total` visits to the topic as fast as possible. Raises LabError when some were not acknowledged."""
    command = [sys.executable, "-m", "generator", "--total", str(total), "--rate", "0"]
    done = subprocess.run(command, env=os.environ | environ, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the generator failed: {''.join(done.stderr.strip().splitlines()[-1:])}")
