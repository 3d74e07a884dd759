"""The errors that the inspector raises for users; each message is a sentence that names the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from faultline.command import CommandError


class InspectorError(CommandError):
    """Something cannot be read; the message names the thing, the cause and the next step."""

    code = 1


class UnknownFormat(InspectorError):
    """A file is of a version that is not known here; it need not be damaged."""


class UnknownConnector(InspectorError):
    """State of a source or a sink was written by a connector that is not known here; it need not be damaged."""


class NothingToRestore(InspectorError):
    """No checkpoint at all exists yet: a job can only start from the beginning."""

    code = 3


@contextlib.contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise InspectorError for an OSError of the block: a disk may fail in the middle of it, a store be stopped.

    `what`: the name of what is read, where the error has none.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InspectorError(f"{error.filename or what} cannot be read: {error.strerror or error}") from None
