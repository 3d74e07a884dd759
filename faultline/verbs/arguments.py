"""The words that follow a verb on its command line."""

from __future__ import annotations

from collections.abc import Sequence

from faultline.stack.errors import StackError

_VALUES = {"--backend": "compose or local", "--profile": "a name, such as cluster"}
"""Flags with a value, which set BACKEND and PROFILE, and the value that they take."""


def split_flags(words: Sequence[str], *, starts: bool = False) -> tuple[dict[str, str], list[str]]:
    """Take the common flags of every verb, at any position: settings by name, and the remaining words.

    `starts`: the verb starts a stack, so it takes the profile too; later ones know it. Raises StackError when a flag
    lacks its value.
    """
    flags = list(_VALUES) if starts else ["--backend"]
    settings: dict[str, str] = {}
    left: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        flag, given, value = word.partition("=")
        if flag in flags:
            if not given:
                value = waiting.pop(0) if waiting else ""
            if not value:
                raise StackError(f"{flag} needs a value: {_VALUES[flag]}")
            settings[flag[2:].upper()] = value
        elif word == "--allow-remote":
            settings["ALLOW_REMOTE"] = "yes"
        else:
            left.append(word)
    return settings, left


def parse_none(verb: str, words: Sequence[str]) -> None:
    """Raise StackError when a verb without arguments gets one."""
    flags_in(verb, words)


def flags_in(verb: str, words: Sequence[str], *known: str) -> bool:
    """Return whether the one known flag is given. Raises StackError for anything else."""
    for word in words:
        if word not in known:
            raise StackError(f"unknown argument '{word}'; see scripts/{verb}.sh --help")
    return bool(words)


def count(text: str, what: str) -> int:
    """Read a whole number above 0. Raises StackError."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise StackError(f"{what} needs a whole number above 0, not '{text}'")
    return int(text)
