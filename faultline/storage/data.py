"""Locations of one stack's data, the words for these locations in its notes, and the folders of the notes."""

from __future__ import annotations

from pathlib import Path

from faultline.settings import Settings
from faultline.storage.location import Location
from faultline.storage.objects import ObjectStore, store_of
from faultline.storage.words import is_uri, location_of


def spark_checkpoints(settings: Settings) -> Location:
    """Parent of the checkpoint location of each Spark query."""
    return location_of(settings.spark_checkpoints, settings)


def flink_checkpoints(settings: Settings) -> Location:
    """Parent of `<job id>/chk-N` of each run of a Flink job."""
    return location_of(settings.flink_checkpoints, settings)


def spark_outputs(settings: Settings) -> Location:
    """Parent of the synchronizer's JSON files, one folder per query."""
    return location_of(settings.spark_outputs, settings)


def data_store(settings: Settings) -> ObjectStore | None:
    """The object store that this data is in; None on a disk. Raises SettingsError."""
    return store_of(settings) if settings.has_store else None


def noted(location: Location, settings: Settings) -> str:
    """The words for a location: a path below the stack's data, since a container has another home; others in full."""
    resolved = location.resolve()
    below = _below(resolved, settings)
    return str(resolved) if below is None else below


def location_noted(words: str, settings: Settings) -> Location:
    """The location that `noted` gives these words."""
    if is_uri(words) or Path(words).is_absolute():
        return location_of(words, settings).resolve()
    return (location_of(settings.data, settings) / words).resolve()


def notes_of(location: Location, settings: Settings) -> Path | None:
    """The folder for this stack's notes on what is in a location, always on a disk.

    It is the location itself on a disk, and the same path below the home for one below the stack's data in an object
    store. None for any other location in a store: this stack writes nothing there.
    """
    if isinstance(location, Path):
        return location
    below = _below(location, settings)
    return None if below is None else settings.home / below


def _below(location: Location, settings: Settings) -> str | None:
    root = location_of(settings.data, settings)
    try:
        return str(location.relative_to(root)) if isinstance(location, Path) == isinstance(root, Path) else None
    except ValueError:
        return None
