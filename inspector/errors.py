"""The one error that this room raises for what a user can meet: a sentence that names the file."""

from __future__ import annotations


class InspectorError(Exception):
    """Something cannot be read; the message names the thing, the cause and the next step."""


class UnknownFormat(InspectorError):
    """A file is of a version that is not known here; nothing says that it is damaged."""


class NothingToRestore(InspectorError):
    """No checkpoint at all exists yet: a job can only start from the beginning."""
