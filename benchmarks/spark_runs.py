"""One run of a synchronizer over the whole topic: the CPU time of its processes, and the lines that it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpu import seconds_of_program
from benchmarks.own_stack import OwnStack


@dataclass(frozen=True)
class Run:
    """CPU seconds of one run, start of the JVM included, and the lines written."""

    cpu_seconds: float
    lines: int


def run(stack: OwnStack, command: Sequence[str], output: Path) -> Run:
    """Run a synchronizer to its end. Raises StackError when it fails."""
    spent = seconds_of_program(command[2], command, stack.backend.environment("tools"))
    return Run(spent, sum(_count_lines(path) for path in output.rglob("part-*")))


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
