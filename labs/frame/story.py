"""The output of a lab: numbered steps on stderr, proven sentences on stdout."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROVEN, NOT_PROVEN = "PROVEN", "NOT PROVEN"


@dataclass(frozen=True)
class Fact:
    """One observation: what was seen, as text, and whether it supports the sentence."""

    text: str
    holds: bool


def same(what: str, seen: object, expected: object) -> Fact:
    """Return the fact that two values are equal; the expected one is shown only when they differ."""
    holds = seen == expected
    return Fact(f"{what}: {seen}" + ("" if holds else f", expected {expected}"), holds)


def shown(path: Path) -> str:
    """Return a path as a user types it: relative if it is below the working folder."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


class Story:
    """The steps and the sentences of one run. With `pause`, each step waits for Enter."""

    def __init__(self, name: str, *, pause: bool = False) -> None:
        self.name = name
        self._pause = pause
        self._steps = 0
        self._sentences: list[tuple[str, tuple[Fact, ...]]] = []
        self._begin = time.monotonic()

    def step(self, title: str) -> None:
        """Begin the next step."""
        self._steps += 1
        if self._pause:
            sys.stderr.write(f"\n   Enter for step {self._steps}: {title} ")
            sys.stderr.flush()
            sys.stdin.readline()
        self._write(f"\n== {self._steps}. {title}")

    def say(self, text: str) -> None:
        """Print text, indented below the step."""
        self._write("".join(f"   {line}\n" for line in text.splitlines()).rstrip("\n"))

    def command(self, text: str) -> None:
        """Show a command as a user would type it."""
        self._write(f"   $ {text}")

    def file(self, path: Path, below: Path) -> None:
        """Show a text file unchanged, under its name relative to `below`."""
        self._write(f"   {path.relative_to(below)}")
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            self._write(f"   | {line}")

    def tree(self, folder: Path, *, hide_checksums: bool = True) -> None:
        """Show every file of a folder with its size; checksum files (`.NAME.crc`) are omitted."""
        self._write(f"   {folder.name}/")
        for path in sorted(folder.rglob("*"), key=_in_order):
            if hide_checksums and path.name.endswith(".crc"):
                continue
            name = "  " * len(path.relative_to(folder).parts) + path.name
            # Spark may still remove a temporary file.
            with contextlib.suppress(FileNotFoundError):
                self._write(f"   {name}/" if path.is_dir() else f"   {name:<44} {path.stat().st_size:>7} bytes")

    def prove(self, sentence: str, *facts: Fact) -> bool:
        """Record a sentence with its facts; it is proven when there are facts and all of them hold."""
        holds = bool(facts) and all(fact.holds for fact in facts)
        self._sentences.append((sentence, facts))
        self._write(f"   -> {PROVEN if holds else NOT_PROVEN}: {sentence}")
        return holds

    def finish(self) -> int:
        """Print each sentence with its facts on stdout; 0 when all are proven, 1 when not."""
        code = 0 if self._sentences else 1
        for sentence, facts in self._sentences:
            holds = bool(facts) and all(fact.holds for fact in facts)
            code = code if holds else 1
            print(f"{PROVEN if holds else NOT_PROVEN}  {sentence}")
            for fact in facts:
                print(f"  {'ok    ' if fact.holds else 'FAILED'}  {fact.text}")
        sys.stdout.flush()
        self._write(f"\n{self.name}: {time.monotonic() - self._begin:.0f} s")
        return code

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _in_order(path: Path) -> list[tuple[int, str]]:
    """Sort by name, numbers by their value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in path.parts]
