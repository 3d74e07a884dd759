"""Files that a checkpoint leaves behind: no retained step names them, and nothing that is kept needs them.

They are listed with the lines that remove them; nothing is removed here.
"""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from faultline.inspector.words import age_words, count, size_words
from faultline.storage.location import Location

IN_A_LINE = 50
"""The largest number of files that one line removes."""


@dataclass(frozen=True)
class Leftover:
    """One file: its bytes, the time of its last change in seconds since the epoch, and why nothing needs it."""

    path: str
    size: int
    changed_at: float
    why: str


@dataclass
class Garbage:
    """Everything that is left over below a path.

    `unseen`: what may need a file, or be left over too, and is not looked at. `problems` name what cannot be read; the
    files that it may need are not listed.
    """

    engine: str
    path: str
    files: list[Leftover] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, file: Location, why: str, before: float | None = None) -> None:
        """List a file; one that is gone meanwhile, or was not changed `before` a time, is left out."""
        try:
            status = file.stat()
        except FileNotFoundError:
            return
        if before is None or status.st_mtime < before:
            self.files.append(Leftover(str(file), status.st_size, status.st_mtime, why))

    def lines(self) -> list[str]:
        """Lines for a shell that remove the files, the largest first."""
        paths = [each.path for each in self.sorted()]
        if any("://" in path for path in paths):
            return [f"aws s3 rm {shlex.quote(path)}" for path in paths]
        quoted = [shlex.quote(path) for path in paths]
        return [f"rm -- {' '.join(quoted[at : at + IN_A_LINE])}" for at in range(0, len(quoted), IN_A_LINE)]

    def sorted(self) -> list[Leftover]:
        """The files, the largest first, of the same size the oldest first."""
        return sorted(self.files, key=lambda each: (-each.size, each.changed_at, each.path))


def outside(garbage: Garbage, inside: str, host: str) -> None:
    """Name the files as the user's machine does: what programs of the stack see at `inside` is at `host` there."""
    garbage.files = [
        Leftover(f"{host}{each.path.removeprefix(inside)}", each.size, each.changed_at, each.why)
        if Path(inside) in Path(each.path).parents
        else each
        for each in garbage.files
    ]


def render(garbage: Garbage) -> str:
    """Say it in lines: the files, what removes them, and what is not seen."""
    total = size_words(sum(each.size for each in garbage.files))
    found = f"{count(len(garbage.files), 'file')} ({total}) that nothing here needs" if garbage.files else "no file"
    lines = [f"left over of {garbage.engine.capitalize()} in {garbage.path}: {found}"]
    now = time.time()
    lines += [
        f"  {size_words(each.size)}, {age_words(now - each.changed_at)} old: {each.path} ({each.why})"
        for each in garbage.sorted()
    ]
    lines += [f"not seen from here: {sentence}" for sentence in garbage.unseen]
    lines += [f"PROBLEM: {sentence}" for sentence in garbage.problems]
    if garbage.files:
        lines += ["", "Nothing was removed. To remove them, type:", *garbage.lines()]
    return "\n".join(lines)


def render_json(garbage: Garbage) -> str:
    """One JSON document; the fields are those of Garbage, and `lines`."""
    return json.dumps(asdict(garbage) | {"lines": garbage.lines()}, indent=2)
