"""The errors that this program shows; each message names the thing, the cause and the next step."""

from __future__ import annotations


class NotKnown(Exception):
    """What has to be known cannot be."""


class Refused(Exception):
    """What was asked for would be wrong."""
