"""Errors that a user can fix."""

from __future__ import annotations

from faultline.command import CommandError


class LabError(CommandError):
    """A lab cannot run; the message is one line: the thing, the cause, the next step."""
