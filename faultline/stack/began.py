"""Offsets from which the newest run of the Flink job began to read, by the log of Flink's own source.

Usage: python3 -m faultline.stack.began

Prints `partition 0 offset 17, partition 1 offset 12`. Exit codes: 0 done, 2 there is no such stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from faultline.command import run
from faultline.stack.stack import Stack, open_stack

_STARTING = re.compile(r"Partition: (?P<topic>\S+)-(?P<partition>\d+), StartingOffset: (?P<offset>-?\d+)")
_LINES = 100_000


def began_at(stack: Stack) -> dict[str, int]:
    """Return the offset of each partition of the visits. Raises StackError."""
    logs = [stack.backend.log(row, _LINES) for row in stack.copies("taskmanager")]
    return in_lines(stack.settings.values["VISITS_TOPIC"], (line for log in logs for line in log.splitlines()))


def in_lines(topic: str, lines: Iterable[str]) -> dict[str, int]:
    """Return the newest offset of each partition of a topic in the lines of all TaskManagers."""
    # Lines begin with their time.
    found = [each for line in sorted(lines) for each in _STARTING.finditer(line) if each["topic"] == topic]
    return {each["partition"]: int(each["offset"]) for each in found}


def words(offsets: Mapping[str, int]) -> str:
    """Print offsets in the order of their partitions."""
    return ", ".join(f"partition {partition} offset {offset}" for partition, offset in sorted(offsets.items()))


def main() -> int:
    """Print the offsets; returns the exit code."""
    print(words(began_at(open_stack())))
    return 0


if __name__ == "__main__":
    run("began", main)
