"""The location that a word names."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from urllib.parse import unquote

from faultline.settings import Settings, SettingsError
from faultline.storage.location import Location
from faultline.storage.objects import object_location

_ON_DISK = "file:///"


def is_uri(word: str) -> bool:
    """Return whether the word is a URI and not a path."""
    return "://" in word


def location_of(word: str, settings: Settings) -> Location:
    """The location that a path, `file:///PATH` or `s3://BUCKET/PATH` names; whether it is there, nobody asks yet.

    Raises SettingsError.
    """
    if not is_uri(word):
        return Path(word)
    if word.startswith(_ON_DISK):
        return Path("/" + unquote(word[len(_ON_DISK) :], errors="surrogateescape"))
    return object_location(word, settings)


def location_argument(word: str) -> Location:
    """The location that an argument names; its error is one that `argparse` reports in a line."""
    try:
        return location_of(word, Settings()) if is_uri(word) else Path(word)
    except OSError as error:
        raise ArgumentTypeError(f"{error.filename} cannot be read: {error.strerror}") from None
    except SettingsError as error:
        raise ArgumentTypeError(str(error)) from None
