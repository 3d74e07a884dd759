"""Record of `scripts/test.sh full`: seconds and commit of each unit of tests, and the shards that follow from them.

Usage: python -m tests.record      prints each shard with its minutes and how long ago it was green

A unit is what one worker runs without a break: a file, or one test of a file whose tests are marked `split`. The record
is written when all tests of a unit have run and passed, on a tree without changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "record.json"
WORKERS = 2
"""Processes that run tests at once: they mostly wait for engines, and a laptop has no memory for more of them."""
SHARD_SECONDS = 35 * 60
UNKNOWN_SECONDS = 60.0
"""Seconds assumed for a unit that has not run yet."""


@dataclass(frozen=True)
class Green:
    """The newest green run of a unit: its seconds on one worker, the tests that passed, the commit, and the UTC day."""

    seconds: float
    passed: int
    commit: str
    date: str


Record = Mapping[str, Green]


def read(file: Path = FILE) -> dict[str, Green]:
    """Return the record, by unit; an absent file is an empty record."""
    if not file.exists():
        return {}
    return {unit: Green(**fields) for unit, fields in json.loads(file.read_text(encoding="utf-8")).items()}


def write(record: Record, file: Path = FILE) -> None:
    """Write the record: a line a unit, in order, so that two shards change different lines."""
    lines = [f"{json.dumps(unit)}: {json.dumps(asdict(green))}" for unit, green in sorted(record.items())]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def seconds_of(unit: str, record: Record) -> float:
    """Return how long a unit takes: as recorded, or a guess."""
    return record[unit].seconds if unit in record else UNKNOWN_SECONDS


def number_of_shards(units: Iterable[str], record: Record) -> int:
    """Return how many shards keep two workers busy for SHARD_SECONDS each."""
    return max(1, round(sum(seconds_of(unit, record) for unit in units) / WORKERS / SHARD_SECONDS))


def shard_of(units: Iterable[str], record: Record, shards: int) -> dict[str, int]:
    """Return the shard of each unit, from 1: neighbours stay together, and all shards take about as long.

    Tests of one file share a stack, so a file is cut only where a shard ends.
    """
    ordered = sorted(set(units))
    ends = accumulate(seconds_of(unit, record) for unit in ordered)
    whole = sum(seconds_of(unit, record) for unit in ordered) or 1.0
    # By the middle of a unit: half of it may stick out at either side.
    middles = [end - seconds_of(unit, record) / 2 for unit, end in zip(ordered, ends, strict=True)]
    return {unit: int(middle * shards / whole) + 1 for unit, middle in zip(ordered, middles, strict=True)}


def git(*words: str) -> str | None:
    """Return what git prints; None without git, without a repository, or when it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def clean_commit() -> str | None:
    """Return the commit of a tree without changes, but for the record itself; None for any other tree."""
    changed = git("status", "--porcelain", "--", ".", f":!{FILE.relative_to(ROOT)}")
    return git("rev-parse", "--short=12", "HEAD") if changed == "" else None


def add(greens: Mapping[str, tuple[float, int]], units: Iterable[str], file: Path = FILE) -> str:
    """Put the seconds and passed tests of green units on record, drop units that are gone; returns what it did.

    `units`: all units of the files that were collected.
    """
    commit = clean_commit()
    if commit is None:
        return "nothing is put on record: the tree has changes that are not committed"
    date = datetime.now(UTC).date().isoformat()
    there = set(units)
    collected = {_file(unit) for unit in there}
    record = {
        unit: green
        for unit, green in read(file).items()
        if unit in there or (_file(unit) not in collected and (ROOT / _file(unit)).is_file())
    }
    for unit, (seconds, passed) in greens.items():
        record[unit] = Green(round(seconds, 1), passed, commit, date)
    write(record, file)
    return f"{len(greens)} units of tests are on record as green at {commit}; commit {file.name}"


def _file(unit: str) -> str:
    return unit.partition("::")[0]


def ages(record: Record) -> dict[str, int | None]:
    """Return how many commits ago each commit of the record was; None for one that this clone does not have."""
    found = {}
    for commit in {green.commit for green in record.values()}:
        count = git("rev-list", "--count", f"{commit}..HEAD")
        found[commit] = None if count is None else int(count)
    return found


def table(record: Record) -> list[str]:
    """Return a line for each shard: its minutes, its tests, and how many commits ago all of it was last green."""
    shards = number_of_shards(record, record)
    places = shard_of(record, record, shards)
    age = ages(record)
    lines = []
    for shard in range(1, shards + 1):
        greens = [record[unit] for unit, place in places.items() if place == shard]
        minutes = sum(green.seconds for green in greens) / WORKERS / 60
        known = [age[green.commit] for green in greens]
        oldest = "unknown" if None in known else f"{max(filter(None, known), default=0)} commits ago"
        tests = sum(green.passed for green in greens)
        lines.append(f"shard {shard}/{shards}: {minutes:4.0f} min, {tests:5} tests, green {oldest}")
    return lines


def never_green(record: Record) -> list[str]:
    """Return the files of tests that are not on record at all."""
    known = {_file(unit) for unit in record}
    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return sorted(set(files) - known)


def main(arguments: Sequence[str]) -> int:
    """Print the table of shards."""
    if arguments:
        sys.stderr.write("usage: python -m tests.record\n")
        return 2
    record = read()
    lines = [*table(record), "one of them: scripts/test.sh full --shard K/N"]
    if missing := never_green(record):
        lines.append(f"not on record: {len(missing)} files of tests: {', '.join(missing)}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
