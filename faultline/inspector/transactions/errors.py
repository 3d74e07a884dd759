"""The errors that this program shows; each message names the thing, the cause and the next step."""

from __future__ import annotations


class NotKnown(Exception):
    """A fact that the program needs cannot be known."""


class Refused(Exception):
    """The requested commit or abort would be wrong."""
