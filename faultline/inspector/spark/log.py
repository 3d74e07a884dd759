"""Spark's numbered logs: a folder of files `0`, `1`, … whose first line is a version (HDFSMetadataLog).

The file sink and the file source fold every tenth file into `9.compact`, `19.compact`, … which repeats all
entries so far (CompactibleFileStreamLog). Files that start with a dot are checksums and unfinished writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from faultline.storage.place import Place
from faultline.storage.reading import names, read

_decode = json.JSONDecoder().decode
"""json.loads without guessing the encoding: a fifth of the time of reading 10,000 batches."""


class LogError(Exception):
    """A log file cannot be read; the message says why, without the file's name."""


class UnknownVersion(LogError):
    """The file seems whole, but its version is not known here; `lines` are those after the version."""

    def __init__(self, version: int, known: int, lines: list[bytes]) -> None:
        super().__init__(f"it is of version {version}, which is not known here (up to {known}): a newer Spark wrote it")
        self.version = version
        self.lines = lines


class LogGone(LogError):
    """The file is not there, or no more: a running query deletes old batches."""


@dataclass(frozen=True)
class LogFolder:
    """Numbers of the files in a log folder, ascending; `compact` those that are folded."""

    path: Place
    numbers: list[int]
    compact: list[int]


def list_log(path: Place) -> LogFolder:
    """List a log folder; an empty listing when it does not exist. Raises PermissionError."""
    try:
        there = names(path)
    except (FileNotFoundError, NotADirectoryError):
        there = []
    numbers = sorted(int(name) for name in there if name.isdecimal())
    compact = sorted(
        int(name.removesuffix(".compact"))
        for name in there
        if name.endswith(".compact") and name.removesuffix(".compact").isdigit()
    )
    return LogFolder(path, numbers, compact)


def read_lines(folder: Place, name: str, known: int = 1) -> list[bytes]:
    """Return the lines of a log file after its version. Raises LogError as `read_versioned` does."""
    return read_versioned(folder, name, known)[1]


def read_versioned(folder: Place, name: str, known: int) -> tuple[int, list[bytes]]:
    """Return the version of a log file and the lines after it; `known` is the highest version that is read here.

    Raises LogError for a file that is empty, cut short or not readable, UnknownVersion for one of a higher version.
    """
    try:
        content = read(folder, name)
    except PermissionError:
        raise LogError("no permission to read it") from None
    except FileNotFoundError:
        raise LogGone("it is missing") from None
    except IsADirectoryError:
        raise LogError("it is a folder, not a file of Spark's log") from None
    except OSError as error:
        raise LogError(f"the system cannot read it: {error.strerror}") from None
    # Kafka's initial offsets start with a byte 0, for readers of Spark 2.1 (KafkaSourceInitialOffsetWriter).
    lines = content.removeprefix(b"\0").split(b"\n")
    if not content:
        raise LogError("it is empty")
    number = lines[0].removeprefix(b"v").strip()
    if not lines[0].startswith(b"v") or not number.isdigit() or int(number) < 1:
        raise LogError("it does not start with a version line such as v1: not a log of Spark, or damaged")
    version = int(number)
    if version > known:
        raise UnknownVersion(version, known, lines[1:])
    return version, lines[1:]


def parse(line: bytes) -> Any:
    """Parse one JSON line. Raises LogError when it is not JSON."""
    try:
        return _decode(line.decode())
    except ValueError:
        raise LogError("it is cut short or not JSON") from None
