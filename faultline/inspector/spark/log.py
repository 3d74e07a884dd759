"""Spark's numbered logs: a folder of files `0`, `1`, … whose first line is a version (HDFSMetadataLog).

The file sink and the file source fold every tenth file into `9.compact`, `19.compact`, … which repeats all entries so
far (CompactibleFileStreamLog). A name that is no number, such as a checksum, an unfinished write or a marker that a
store left for a folder, is no file of the log (HDFSMetadataLog.isBatchFile), and neither is a folder (listBatches).
`09` and `+9` are numbers: Spark counts batch 9, and then opens the file `9`.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from faultline.storage.location import Location
from faultline.storage.reading import names, read

_decode = json.JSONDecoder().raw_decode
"""json.loads without guessing the encoding and looking for blanks: a fifth of the time of reading 10,000 batches."""
_BLANKS = " \t\n\r"


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


NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
"""The name of a batch: what `toLong` of Scala reads, and `toString` writes again."""
OTHER_NUMBER = re.compile(r"\+?[0-9]{1,18}")
"""A name that `toLong` reads too, and `toString` does not write."""
VERSION = re.compile(rb"[0-9]{1,9}")
COMPACT = ".compact"
COMPACT_INTERVAL = 10
"""The default of spark.sql.streaming.fileSource.log.compactInterval and of fileSink.log.compactInterval."""


@dataclass(frozen=True)
class LogFolder:
    """Numbers of the files in a log folder, ascending; `compact` those that are folded.

    `misnamed`: names that Spark takes for the number of a batch that has no file, by this number.
    """

    path: Location
    numbers: list[int]
    compact: list[int]
    misnamed: dict[int, str] = field(default_factory=dict)

    @cached_property
    def interval(self) -> int:
        """Entries from one compact file to the next (CompactibleFileStreamLog.compactInterval)."""
        if len(self.compact) > 1:
            return self.compact[-1] - self.compact[-2]
        if not self.compact:
            # An entry that the default would fold is not folded: the query set a longer interval.
            return self.latest + 2 if COMPACT_INTERVAL - 1 in self.numbers else COMPACT_INTERVAL
        first = self.compact[0] + 1
        is_plain = any(number >= first and (number + 1) % self._derived == 0 for number in self.numbers)
        return first if is_plain else self._derived

    @cached_property
    def _derived(self) -> int:
        """The interval that the default makes of the only compact file (deriveCompactInterval of the same class)."""
        size = self.compact[0] + 1
        if size // 2 <= COMPACT_INTERVAL:
            return size
        return next((each for each in range(COMPACT_INTERVAL, size // 2 + 1) if size % each == 0), size)

    @property
    def is_longer(self) -> bool:
        """Return whether the query set a longer interval, which Spark can only take from the setting."""
        if len(self.compact) > 1:
            return False
        return self.interval > (self._derived if self.compact else COMPACT_INTERVAL)

    def file(self, number: int) -> str:
        """Return the name of the file that an entry is read from (CompactibleFileStreamLog.batchIdToPath)."""
        return f"{number}{COMPACT}" if (number + 1) % self.interval == 0 else str(number)

    def has(self, number: int) -> bool:
        """Return whether the file of an entry is there, under the name that Spark looks for."""
        return number in (self.compact if self.file(number).endswith(COMPACT) else self.numbers)

    @property
    def latest(self) -> int:
        """Return the newest entry by the names, whether its file is there or not (getLatestBatchId); -1 without any."""
        return max([*self.numbers, *self.compact], default=-1)

    def valid(self) -> range:
        """Return the entries that have the whole log together: the last compact one, and those after it.

        CompactibleFileStreamLog.getAllValidBatches.
        """
        latest = self.latest
        return range(max(0, (latest + 1) // self.interval * self.interval - 1), latest + 1)


def misnamed(folder: LogFolder) -> dict[int, str]:
    """Say what is wrong with the names that make Spark look for a batch after all others; empty when there are none."""
    return {
        number: f"the file {number} is missing: Spark takes the name {folder.path / name} for batch {number}"
        for number, name in folder.misnamed.items()
        if number > folder.latest and (folder.path / name).is_file()
    }


def list_log(path: Location) -> LogFolder:
    """List a log folder; an empty listing when it does not exist. Raises PermissionError."""
    try:
        there = names(path)
    except (FileNotFoundError, NotADirectoryError):
        there = []
    numbers, rest = [], []
    for name in there:
        if NUMBER.fullmatch(name):
            numbers.append(int(name))
        elif not name.startswith("."):
            rest.append(name)
    numbers.sort()
    compact = sorted(
        int(name.removesuffix(COMPACT))
        for name in rest
        if name.endswith(COMPACT) and NUMBER.fullmatch(name.removesuffix(COMPACT))
    )
    others = {int(name): name for name in rest if OTHER_NUMBER.fullmatch(name)}
    return LogFolder(path, numbers, compact, {each: name for each, name in others.items() if each not in numbers})


def read_lines(folder: Location, name: str) -> list[bytes]:
    """Return the lines of a log file after its version, 1. Raises LogError as `read_versioned` does."""
    return read_versioned(folder, name, 1)[1]


def read_versioned(folder: Location, name: str, known: int, *, trims: bool = False) -> tuple[int, list[bytes]]:
    """Return the version of a log file and the lines after it; `known` is the highest version that is read here.

    `trims`: blanks around the version do not count. CommitLog trims them, and other logs do not.

    Raises LogError for a file that is empty, cut short or not readable, UnknownVersion for one of a higher version.
    """
    try:
        content = read(folder, name)
    except PermissionError:
        raise LogError("no permission to read it") from None
    except FileNotFoundError:
        raise LogGone("it is missing") from None
    except IsADirectoryError:
        raise LogGone("a folder is in its place") from None
    except OSError as error:
        raise LogError(f"the system cannot read it: {error.strerror}") from None
    if not content:
        raise LogError("it is empty")
    return versioned(content, known, trims=trims)


def fits_checksum(folder: Location, name: str) -> bool:
    """Return whether a file is as Hadoop's ChecksumFileSystem wrote it, or nothing tells.

    `.NAME.crc` has `crc` and a byte 0, the bytes of a part, and the CRC-32 of each; one of another form is passed over.
    RocksDBFileManager reads snapshots through it, on a disk, and FileSystemBasedCheckpointFileManager the logs. Spark's
    default for logs, FileContextBasedCheckpointFileManager, compares none.
    """
    if not isinstance(folder, Path):
        return True
    try:
        sums = (folder / f".{name}.crc").read_bytes()
        size = int.from_bytes(sums[4:8])
        if sums[:4] != b"crc\0" or not size:
            return True
        content = read(folder, name)
    except OSError:
        return True
    parts = (content[at : at + size] for at in range(0, len(content), size))
    expected = (sums[at : at + 4] for at in range(8, len(sums), 4))
    return all(zlib.crc32(part).to_bytes(4) == each for part, each in zip(parts, expected, strict=False))


def versioned(content: bytes, known: int, *, trims: bool = False) -> tuple[int, list[bytes]]:
    """Return the version and the lines after it; lines end as Scala's `getLines` ends them, also with a return.

    Raises as `read_versioned`.
    """
    first, *lines = content.splitlines()
    version = _version(first.strip() if trims else first)
    if version < 1:
        raise LogError("it does not start with a version line such as v1: not a log of Spark, or damaged")
    if version > known:
        raise UnknownVersion(version, known, lines)
    return version, lines


@lru_cache(maxsize=8)
def _version(line: bytes) -> int:
    """Read `v1`; 0 for what is no version."""
    number = line.removeprefix(b"v")
    return int(number) if line.startswith(b"v") and VERSION.fullmatch(number) else 0


def parse(line: bytes) -> Any:
    """Parse one JSON line. Raises LogError when it is not JSON.

    Text behind an object does not count: Spark's parser, Jackson, stops at its end.
    """
    try:
        text = line.decode().strip(_BLANKS)
        value, end = _decode(text)
    except (ValueError, RecursionError):
        raise LogError("it is cut short or not JSON") from None
    if end != len(text) and not isinstance(value, dict):
        raise LogError("it is cut short or not JSON")
    return value
