"""The errors that this program shows; each message names the thing, the cause and the next step."""

from __future__ import annotations

from faultline.command import CommandError


class NotKnown(CommandError):
    """A fact that the program needs cannot be known."""


class Refused(CommandError):
    """The requested commit or abort would be wrong."""

    code = 1
