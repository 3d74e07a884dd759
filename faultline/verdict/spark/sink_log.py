"""The file sink's own log, which says which files of the output folder count."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location
from faultline.storage.reading import posix_path
from faultline.verdict.escape import printable
from faultline.verdict.model import Unknown
from faultline.verdict.spark.checkpoint import read_log

_TASK = re.compile(r"part-(\d{5})-")


@dataclass(frozen=True)
class Entry:
    """A file that the log names: its name below the output folder and its size in bytes.

    `batch` is the batch of the log's file; a compacted one has the files of all batches up to its own. A file of a
    smaller `order` was written earlier. `skipped` is why readers do not read the file; empty when they do.
    """

    batch: int
    order: int
    name: str
    size: int
    skipped: str


@dataclass(frozen=True)
class Log:
    """The entries of a log, and its batches from the newest compaction on."""

    folder: Location
    first: int
    batches: tuple[int, ...]
    entries: tuple[Entry, ...]

    def require_whole(self, committed: int | None) -> None:
        """Raise Unknown when a batch is missing; the sink logs each batch before its commit, also an empty one."""
        there = set(self.batches)
        newest = max([*there, -1 if committed is None else committed])
        for batch in range(self.first, newest + 1):
            if batch not in there:
                raise Unknown(
                    f"the log is damaged: batch {batch} is missing in {self.folder}, so the output is not known"
                )


def read_sink_log(output: Location) -> Log | None:
    """Read the log of an output folder; None without one. Raises OSError, and Unknown when it is damaged.

    It consists of the newest `N.compact`, which has all up to N, and each later batch. Each file: a line `v1`, then one
    JSON object per line with `path` (a URI), `size` in bytes and `action`.
    (Spark's FileStreamSinkLog and CompactibleFileStreamLog.)
    """
    log = output / SINK_LOG
    if not log.is_dir():
        return None
    files: dict[int, Location] = {}
    compacted = -1
    for file in log.iterdir():
        number, _, suffix = file.name.partition(".")
        if number.isdecimal() and suffix == "compact":
            files[int(number)] = file
            compacted = max(compacted, int(number))
        elif number.isdecimal() and not suffix:
            files.setdefault(int(number), file)
    first = max(compacted, 0)
    batches = tuple(sorted(batch for batch in files if batch >= first))
    lines = [(batch, line) for batch in batches for line in logged_in(files[batch])]
    return Log(log, first, batches, tuple(_entries(lines, compacted, output)))


def _entries(lines: list[tuple[int, LoggedFile]], compacted: int, output: Location) -> Iterator[Entry]:
    """Make entries of the log's lines, in the order of writing.

    A compacted file has the batches one after the other, each with its files by the number of their task: where that
    number does not grow, a batch begins.
    """
    places = [_place_in(output, line.path) for _, line in lines]
    # A reader has one path for the folder, and reads no file that was logged under another one.
    root = next((root for name, root in reversed(places) if name), None)
    is_copy = root is None
    order, last = -1, (-1, -1)
    for (batch, line), (place, its_root) in zip(lines, places, strict=True):
        task = _TASK.match(posixpath.basename(line.path))
        number = int(task[1]) if task else last[1] + 1
        if batch != last[0] or (batch == compacted and number <= last[1]):
            order += 1
        last = (batch, number)
        # A folder that was copied to another name is judged by its files' names.
        name = place or (posixpath.basename(line.path) if is_copy else "")
        skipped = why_skipped(name, is_folder=line.is_folder)
        if place and its_root != root:
            skipped = f"it was written under {printable(its_root)}, and the newest batch under {printable(str(root))}"
        yield Entry(batch, order, name or line.path, line.size, skipped)


def why_skipped(name: str, *, is_folder: bool = False) -> str:
    """Return why Spark does not read a file of the folder (tests/stack/test_sink_log.py); empty when it does.

    In a folder without a log: InMemoryFileIndex.shouldFilterOutPathName, PartitioningAwareFileIndex.allFiles.
    """
    if not name:
        return "it is in another folder"
    if is_folder:
        return "it is logged as a folder"
    *folders, file = name.split("/")
    if file.startswith(("_", ".")):
        return "its name begins with _ or ."
    if file.endswith("._COPYING_"):
        return "it is being copied"
    if not all("=" in folder for folder in folders):
        return "it is in a subfolder"
    return ""


class LoggedFile(NamedTuple):
    """A file by its path in a file of the log, and its size in bytes."""

    path: str
    size: int
    is_folder: bool


def logged_in(file: Location) -> Iterator[LoggedFile]:
    """Read one file of the log. Raises OSError, and Unknown when it is damaged."""
    version, *lines = read_log(file).removesuffix("\n").split("\n")
    if version != "v1":
        raise Unknown(f"{file} is not a sink log of version v1; the log is damaged")
    for line in lines:
        try:
            entry = json.loads(line)
            uri, size = entry["path"], entry["size"]
            known = isinstance(uri, str) and type(size) is int and size >= 0 and entry["action"] == "add"
            path = unquote(urlsplit(uri).path, errors="surrogateescape") if known else ""
            is_folder = bool(entry.get("isDir"))
        except (ValueError, KeyError, TypeError, RecursionError):
            path = ""
        if not path.strip("/"):
            raise Unknown(f"the log is damaged: {file} has an entry that cannot be read: {printable(line[:80])}")
        yield LoggedFile(posixpath.normpath(path), size, is_folder)


def _place_in(folder: Location, logged: str) -> tuple[str, str]:
    """Find a logged file's name under the folder that is judged, and the path of that folder; empty ones without.

    The path is absolute and may have been written under another root (in a container): only the part below the last
    folder of the output's name counts.
    """
    path = PurePosixPath(logged)
    root = posix_path(folder)
    if path.is_relative_to(root):
        return "/".join(path.relative_to(root).parts), str(root)
    parts = path.parts[:-1]
    if folder.name in parts:
        last = len(parts) - 1 - parts[::-1].index(folder.name)
        return "/".join(path.parts[last + 1 :]), str(PurePosixPath(*path.parts[: last + 1]))
    return "", ""
