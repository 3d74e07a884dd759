"""Places of one stack's data, the words for these places in its notes, and the folders of the notes."""

from __future__ import annotations

from pathlib import Path

from faultline.settings import Settings
from faultline.storage.objects import ObjectStore, store_of
from faultline.storage.place import Place
from faultline.storage.words import is_uri, place_of


def spark_checkpoints(settings: Settings) -> Place:
    """Parent of the checkpoint location of each Spark query."""
    return place_of(settings.spark_checkpoints, settings)


def flink_checkpoints(settings: Settings) -> Place:
    """Parent of `<job id>/chk-N` of each run of a Flink job."""
    return place_of(settings.flink_checkpoints, settings)


def spark_outputs(settings: Settings) -> Place:
    """Parent of the synchronizer's JSON files, one folder per query."""
    return place_of(settings.spark_outputs, settings)


def data_store(settings: Settings) -> ObjectStore | None:
    """The object store that this data is in; None on a disk. Raises SettingsError."""
    return store_of(settings) if settings.has_store else None


def noted(place: Place, settings: Settings) -> str:
    """The words for a place: a path below the stack's data, since a container has another home; others in full."""
    resolved = place.resolve()
    below = _below(resolved, settings)
    return str(resolved) if below is None else below


def place_noted(words: str, settings: Settings) -> Place:
    """The place that `noted` gives these words."""
    if is_uri(words) or Path(words).is_absolute():
        return place_of(words, settings).resolve()
    return (place_of(settings.data, settings) / words).resolve()


def notes_of(place: Place, settings: Settings) -> Path | None:
    """The folder for this stack's notes on what is in a place, always on a disk.

    It is the place itself on a disk, and the same path below the home for one below the stack's data in an object
    store. None for any other place in a store: this stack writes nothing there.
    """
    if isinstance(place, Path):
        return place
    below = _below(place, settings)
    return None if below is None else settings.home / below


def _below(place: Place, settings: Settings) -> str | None:
    root = place_of(settings.data, settings)
    try:
        return str(place.relative_to(root)) if isinstance(place, Path) == isinstance(root, Path) else None
    except ValueError:
        return None
