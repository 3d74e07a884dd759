"""Checks that engines can write to a location."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

from faultline.storage.location import Location
from faultline.storage.objects import ObjectLocation


def require_writable(folder: Location, size: int) -> None:
    """Write so many bytes to a folder and remove them; a folder on a disk is made if it is missing. Raises OSError."""
    if isinstance(folder, ObjectLocation):
        # Of a bucket that is not there, a failed write says less.
        folder.exists()
        folder.probe(size)
        return
    assert isinstance(folder, Path)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as probe:
        probe.write(bytes(size))
