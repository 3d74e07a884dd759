"""The file sink's own log, which says which files of the output folder count."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from places.place import Place
from places.reading import posix_path
from verdict.model import Unknown
from verdict.spark.checkpoint import read_log

METADATA_FOLDER = "_spark_metadata"


@dataclass(frozen=True)
class Entry:
    """A file that the log names: its name below the output folder and its size in bytes.

    `batch` is the batch of the log's file. A compacted one has the files of all batches up to its own, so the order of
    two files in it is not known.
    """

    batch: int
    name: str
    size: int


@dataclass(frozen=True)
class Log:
    """The entries of a log, and its batches from the newest compaction on."""

    folder: Place
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


def read_sink_log(output: Place) -> Log | None:
    """Read the log of an output folder; None without one. Raises OSError, and Unknown when it is damaged.

    It consists of the newest `N.compact`, which has all up to N, and each later batch. Each file: a line `v1`, then one
    JSON object per line with `path` (a URI), `size` in bytes and `action`.
    (Spark's FileStreamSinkLog and CompactibleFileStreamLog.)
    """
    log = output / METADATA_FOLDER
    if not log.is_dir():
        return None
    files: dict[int, Place] = {}
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
    entries = tuple(entry for batch in batches for entry in _entries(files[batch], batch, output))
    return Log(log, first, batches, entries)


def _entries(file: Place, batch: int, output: Place) -> Iterator[Entry]:
    version, *lines = read_log(file).removesuffix("\n").split("\n")
    if version != "v1":
        raise Unknown(f"{file} is not a sink log of version v1; the log is damaged")
    for line in lines:
        try:
            entry = json.loads(line)
            uri, size = entry["path"], entry["size"]
            known = isinstance(uri, str) and type(size) is int and size >= 0 and entry["action"] == "add"
            name = _name_in(output, uri) if known else ""
        except (ValueError, KeyError, TypeError, RecursionError):
            name = ""
        if not name:
            raise Unknown(f"the log is damaged: {file} has an entry that cannot be read: {line[:80]}")
        yield Entry(batch, name, size)


def _name_in(folder: Place, uri: str) -> str:
    """Find a logged file's name under the folder that is judged; empty when there is none.

    The URI is absolute and may have been written under another root (in a container): only the
    part below the last folder of the output's name counts; a path without that name is a file of the folder.
    """
    path = PurePosixPath(posixpath.normpath(unquote(urlsplit(uri).path, errors="surrogateescape")))
    root = posix_path(folder)
    if path.is_relative_to(root):
        return "/".join(path.relative_to(root).parts)
    parts = path.parts[:-1]
    if folder.name in parts:
        last = len(parts) - 1 - parts[::-1].index(folder.name)
        return "/".join(path.parts[last + 1 :])
    return path.name
