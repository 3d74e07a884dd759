"""The project's own programs, started by a lab as processes of their own: a SIGKILL needs one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contract.settings import ROOT
from labs.broker import Broker
from labs.errors import LabError
from labs.folder import LabFolder

LIMIT_SECONDS = 120
_POLL_SECONDS = 0.05


class Program:
    """A running program in a process group of its own; what it says goes to the file `log`."""

    def __init__(self, command: list[str], environ: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=os.environ | environ,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def words(self) -> str:
        """Return what it said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Return once the condition holds. Raises LabError when it ends before, or takes too long."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            ended = self._process.poll() is not None and not condition()
            if ended or time.monotonic() > deadline:
                why = f"exit code {self._process.returncode}" if ended else f"{LIMIT_SECONDS} s"
                last = "".join(self.words().strip().splitlines()[-1:])
                raise LabError(f"waited in vain for {what} ({why}): {last}; see {self.log}")
            time.sleep(_POLL_SECONDS)

    def kill(self) -> int:
        """SIGKILL to the program and its children; returns the exit code."""
        os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.wait(timeout=LIMIT_SECONDS)

    def terminate(self) -> None:
        """SIGTERM to the program."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end; returns the exit code. Raises LabError when it takes too long."""
        try:
            return self._process.wait(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.log.stem} did not end within {LIMIT_SECONDS} s; see {self.log}") from None

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None


@contextmanager
def program(command: list[str], environ: dict[str, str], log: Path) -> Iterator[Program]:
    """Start a program; at the end of the block nothing of it runs any more."""
    started = Program(command, environ, log)
    try:
        yield started
    finally:
        if started.running:
            started.kill()


def environment(folder: LabFolder, broker: Broker) -> dict[str, str]:
    """Return the settings under which the project's programs act in the lab's folder and on its broker."""
    return broker.environ | {
        "STACK_HOME": str(folder.root),
        "STACK_STATE": str(folder / ".stack"),
        # Any free port: the stack's own synchronizer may run.
        "SPARK_UI_PORT": "0",
        "SPARK_ARGS": "",
    }


def send_visits(total: int, environ: dict[str, str]) -> None:
    """Send `total` visits to the topic as fast as possible. Raises LabError when some were not acknowledged."""
    command = [sys.executable, "-m", "generator", "--total", str(total), "--rate", "0"]
    done = subprocess.run(command, env=os.environ | environ, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"the generator failed: {''.join(done.stderr.strip().splitlines()[-1:])}")
