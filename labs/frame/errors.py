"""Errors that a user can fix."""

from __future__ import annotations


class LabError(Exception):
    """A lab cannot run; the message is one line: the thing, the cause, the next step."""
