"""Reads of many small files from a location, with the fastest calls where the location is on a disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from faultline.storage.location import Location, Status

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def names(folder: Location) -> list[str]:
    """Names of all that is in a folder and is no folder itself, in any order. Raises OSError."""
    if isinstance(folder, Path):
        # Faster than Path.iterdir for 10,000 files, since the kind comes with the name.
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.is_dir()]
    return [each.name for each in folder.iterdir() if not each.is_dir()]


def read(folder: Location, name: str) -> bytes:
    """Content of a file in a folder. Raises OSError.

    The file is named by its folder, since making a path for each of 10,000 files costs as much as reading them.
    """
    if not isinstance(folder, Path):
        return (folder / name).read_bytes()
    # A named pipe would wait for a writer.
    descriptor = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        size = os.fstat(descriptor).st_size
        content = os.read(descriptor, size)
        # Linux reads at most 2 GiB at once.
        while len(content) < size and (more := os.read(descriptor, size - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)


def changed_at(folder: Location, inside: Iterable[Status]) -> float:
    """Return when a folder last changed; in an object store, when the newest object in the folder was written.

    `inside`: metadata of the files in the folder, for which a store need not be asked again. Raises OSError.
    """
    if isinstance(folder, Path):
        return folder.stat().st_mtime
    return max((status.st_mtime for status in inside), default=0.0)


def size_below(folder: Location) -> int:
    """Bytes of all files below a folder; one that is removed or renamed meanwhile does not count."""
    total = 0
    if isinstance(folder, Path):
        for root, _, found in os.walk(folder):
            for name in found:
                with contextlib.suppress(FileNotFoundError):
                    total += (Path(root) / name).stat().st_size
        return total
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def posix_path(location: Location) -> PurePosixPath:
    """The path in a location's URI: for an object, that below its bucket."""
    if isinstance(location, Path):
        return PurePosixPath(location)
    return PurePosixPath(unquote(urlsplit(location.as_uri()).path, errors="surrogateescape"))


@dataclass
class Tree:
    """Files below a folder: their sizes in bytes, and kinds of entries that are no file, by name below the folder."""

    files: dict[str, int] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)


def walk(root: Location, skipped: tuple[str, ...]) -> Tree:
    """Find the files below a folder, and entries that are neither file nor folder.

    Names that begin with one of `skipped` are left out, folders with all that is in them. Each folder is read once: a
    link to one that is already read would repeat its files, or never end. Raises OSError.
    """
    if isinstance(root, Path):
        return _walk_on_disk(root, skipped)
    root.stat()
    tree = Tree()
    for each in root.rglob("*"):
        inside = each.relative_to(root)
        if not any(part.startswith(skipped) for part in inside.parts) and each.is_file():
            tree.files[inside.as_posix()] = each.stat().st_size
    return tree


def _walk_on_disk(root: Path, skipped: tuple[str, ...]) -> Tree:
    tree = Tree()
    read_already: set[tuple[int, int]] = set()
    folders = [("", root)]
    links: list[tuple[str, Path]] = []
    while folders or links:
        prefix, folder = folders.pop() if folders else links.pop()
        found = folder.stat()
        if (found.st_dev, found.st_ino) in read_already:
            tree.special[prefix.removesuffix("/")] = "a link to a folder that is already read"
            continue
        read_already.add((found.st_dev, found.st_ino))
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(skipped):
                    continue
                name = prefix + entry.name
                mode, size = _look_at(entry)
                if stat.S_ISDIR(mode):
                    # Links last: their target is read under its own name, if it has one here.
                    (links if entry.is_symlink() else folders).append((f"{name}/", folder / entry.name))
                elif stat.S_ISREG(mode):
                    tree.files[name] = size
                else:
                    tree.special[name] = _KINDS.get(stat.S_IFMT(mode), "a broken link")
    return tree


def _look_at(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Find mode and size of the target of an entry; mode 0 for a broken link."""
    try:
        found = entry.stat()
        return found.st_mode, found.st_size
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP) or not entry.is_symlink():
            raise
        return 0, 0
