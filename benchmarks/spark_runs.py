"""One run of a synchronizer over the whole topic: the CPU time of its processes, and the lines that it wrote."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpu import seconds_until_end
from benchmarks.own_stack import OwnStack
from contract.settings import ROOT
from stack.errors import StackError


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
        spent = seconds_until_end(process)
        words.seek(0)
        tail = words.read().decode(errors="replace").strip().splitlines()[-3:]
    if process.returncode:
        raise StackError(f"{command[2]} failed: {' / '.join(tail)}", 1)
    return Run(spent, sum(_count_lines(path) for path in output.rglob("part-*")))


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
