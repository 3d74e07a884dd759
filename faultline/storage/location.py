"""A location: a file or folder that an engine has written, as far as it is read here."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import PurePath
from typing import Any, Literal, Protocol


class Status(Protocol):
    """Metadata of a location, as `os.stat_result` has them."""

    @property
    def st_mode(self) -> int:
        """Its kind, for the functions of the module `stat`."""
        ...

    @property
    def st_size(self) -> int:
        """Its bytes."""
        ...

    @property
    def st_mtime(self) -> float:
        """Time of the last change, in seconds since the epoch."""
        ...


class Location(Protocol):
    """A file or folder: exactly the methods of `pathlib.Path` that readers of engines' data use.

    `pathlib.Path` is one as it is. Errors are those of Path: FileNotFoundError, PermissionError and other OSErrors,
    with `filename` and `strerror`.
    """

    @property
    def name(self) -> str:
        """The last part."""
        ...

    @property
    def parent(self) -> Location:
        """The folder that it is in."""
        ...

    def __truediv__(self, key: str, /) -> Location:
        """A location in this folder."""
        ...

    def __lt__(self, other: Any, /) -> bool: ...

    def exists(self) -> bool:
        """Return whether it is there."""
        ...

    def is_file(self) -> bool:
        """Return whether it is there and a file."""
        ...

    def is_dir(self) -> bool:
        """Return whether it is there and a folder."""
        ...

    def is_absolute(self) -> bool:
        """Return whether it is the same from every working directory."""
        ...

    def absolute(self) -> Location:
        """The absolute location; links stay."""
        ...

    def resolve(self) -> Location:
        """The absolute location, without links."""
        ...

    def relative_to(self, other: Any, /) -> PurePath:
        """Its path below another location."""
        ...

    def as_uri(self) -> str:
        """Its URI, as engines take it."""
        ...

    def iterdir(self) -> Iterator[Location]:
        """List the entries of the folder, in any order."""
        ...

    def glob(self, pattern: str) -> Iterator[Location]:
        """Find the entries below the folder that fit the pattern, a name or several with `/` between them."""
        ...

    def rglob(self, pattern: str) -> Iterator[Location]:
        """Find the entries at any depth below the folder whose name fits the pattern."""
        ...

    def stat(self) -> Status:
        """Return the metadata of the location. Raises FileNotFoundError when the location is not there."""
        ...

    def open(self, mode: Literal["rb"], /) -> BufferedReader:
        """Open the file to read and to seek in it."""
        ...

    def read_bytes(self) -> bytes:
        """The content of the file."""
        ...

    def read_text(self, encoding: str | None = None) -> str:
        """The content of the file as text."""
        ...
