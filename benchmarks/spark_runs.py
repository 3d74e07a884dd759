"""One run of a synchronizer over the whole topic: the CPU time of its processes, and the lines that it wrote."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.own_stack import OwnStack
from contract.settings import ROOT
from stack.errors import StackError

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """CPU seconds of one run, start of the JVM included, and the lines written."""

    cpu_seconds: float
    lines: int


def run(stack: OwnStack, command: Sequence[str], output: Path) -> Run:
    """Run a synchronizer to its end. Raises StackError when it fails."""
    environ = stack.backend.environment("tools")
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=words, stderr=words)
        spent = _watch(process)
        words.seek(0)
        tail = words.read().decode(errors="replace").strip().splitlines()[-3:]
    if process.returncode:
        raise StackError(f"{command[2]} failed: {' / '.join(tail)}", 1)
    return Run(spent, sum(_count_lines(path) for path in output.rglob("part-*")))


def _watch(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process has ended; returns the CPU seconds of it and its children."""
    # A process that has ended takes its times with it, unless its parent waits for it: so the last look counts.
    spent: dict[int, float] = {}
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for member in (watched, *watched.children(recursive=True)):
                spent[member.pid] = sum(member.cpu_times()[:2])
        except psutil.Error:
            pass
        time.sleep(_LOOK_SECONDS)
    return sum(spent.values())


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
