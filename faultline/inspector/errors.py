"""The errors that the inspector raises for users; each message is a sentence that names the file."""

from __future__ import annotations


class InspectorError(Exception):
    """Something cannot be read; the message names the thing, the cause and the next step."""


class UnknownFormat(InspectorError):
    """A file is of a version that is not known here; it need not be damaged."""


class UnknownConnector(InspectorError):
    """State of a source or a sink was written by a connector that is not known here; it need not be damaged."""


class NothingToRestore(InspectorError):
    """No checkpoint at all exists yet: a job can only start from the beginning."""
