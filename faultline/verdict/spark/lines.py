"""Reads lines of an output file with bounded memory: where each begins, and its digest."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedReader, BytesIO
from typing import NamedTuple

from faultline.formats.digest import DIGEST_BYTES, digest
from faultline.storage.location import Location
from faultline.verdict.checker import Moved
from faultline.verdict.model import Unknown

CHUNK_BYTES = 1 << 20
LONG_BYTES = 8 << 20
"""A longer line is digested while it is read and never kept in memory."""


@dataclass(frozen=True)
class Part:
    """The lines of a file that begin at byte `begin` or later, and before byte `end`."""

    path: Location
    begin: int
    end: int


class Lines(NamedTuple):
    """Some lines: the bytes before each, and the digest of each with its line end.

    So a torn line, which has no line end, differs from the complete one.
    """

    positions: list[int]
    digests: list[bytes]


def line_digest(line: bytes) -> bytes:
    """Digest a line given without its line end, like `read_lines` digests a complete one."""
    return digest(line + b"\n")


def read_lines(part: Part, *, torn: bool) -> Iterator[Lines]:
    """Read the lines of a part; `torn`: also the last one of the file when it has no line end.

    Raises Moved when the file is gone, Unknown when it cannot be read.
    """
    try:
        with part.path.open("rb") as stream:
            yield from _lines(stream, part, torn=torn)
    except FileNotFoundError:
        raise Moved(f"output file {part.path} was removed while the output was read; judge again") from None
    except OSError as error:
        raise Unknown(f"output file {part.path} cannot be read: {error.strerror}; judge again") from None


def _lines(stream: BufferedReader, part: Part, *, torn: bool) -> Iterator[Lines]:
    position, rest = _first_line(stream, part)
    while position < part.end:
        chunk = stream.read(CHUNK_BYTES)
        data = rest + chunk
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) > LONG_BYTES:
            found, length, rest, whole = _long_line(stream, data)
            if whole or torn:
                yield Lines([position], [found])
            position += length
            continue
        # Not splitlines(), which also splits at CR.
        lines = BytesIO(data[:cut]).readlines()
        starts = list(itertools.accumulate(map(len, lines), initial=position))
        position = starts.pop()
        if position > part.end:
            beyond = bisect_left(starts, part.end)
            del starts[beyond:], lines[beyond:]
        if lines:
            yield Lines(starts, [digest(line) for line in lines])
        rest = data[cut:]
        if not chunk:
            if rest and torn and position < part.end:
                yield Lines([position], [digest(rest)])
            return


def _first_line(stream: BufferedReader, part: Part) -> tuple[int, bytes]:
    """Find where the first line of a part begins, and what is read of it and of the next ones."""
    if not part.begin:
        return 0, b""
    # The byte before the part shows whether a line begins at the part.
    position = part.begin - 1
    stream.seek(position)
    while position < part.end and (chunk := stream.read(CHUNK_BYTES)):
        if cut := chunk.find(b"\n") + 1:
            return position + cut, chunk[cut:]
        position += len(chunk)
    return part.end, b""


def _long_line(stream: BufferedReader, data: bytes) -> tuple[bytes, int, bytes, bool]:
    """Read a line to its end: its digest, its length, what is read after it, and whether it has a line end."""
    hasher, length = blake2b(data, digest_size=DIGEST_BYTES), len(data)
    while chunk := stream.read(CHUNK_BYTES):
        cut = chunk.find(b"\n") + 1
        hasher.update(chunk[:cut] if cut else chunk)
        length += cut or len(chunk)
        if cut:
            return hasher.digest(), length, chunk[cut:], True
    return hasher.digest(), length, b"", False


class Text(NamedTuple):
    """The content of a line, without its line end, as far as it was read; `torn`: it has no line end."""

    content: bytes
    whole: bool
    torn: bool


def line_at(path: Location, position: int, limit: int) -> Text:
    """Read the line that begins at a position, up to a maximum of bytes. Raises OSError."""
    with path.open("rb") as stream:
        stream.seek(position)
        line = stream.readline(limit)
    whole = line.endswith(b"\n")
    return Text(line.removesuffix(b"\n"), whole, not whole and len(line) < limit)
