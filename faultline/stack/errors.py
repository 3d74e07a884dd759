"""Errors shown to users as one line."""

from __future__ import annotations

from faultline.command import CommandError


class StackError(CommandError):
    """An error for the user: the message names the thing, the cause and the next step. Exit code 2 by default."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
