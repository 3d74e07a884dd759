"""Makes text of records safe to print: no record can forge a line or move the cursor."""

from __future__ import annotations

_LONGEST_NAME = 200


def printable(text: str) -> str:
    r"""Replace each character that is not visible (controls, line ends, direction marks, surrogates) by its escape.

    A backslash in the text is doubled, so that an escape cannot be imitated.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def name_of(text: str) -> str:
    """Cut a visit_id for a finding: it can be as long as a record; the finding has its place."""
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


def shown(content: bytes | None, limit: int = 120) -> str:
    """Show the beginning of a record's bytes as printable text."""
    if content is None:
        return "null"
    text = content[:limit].decode("utf-8", "replace")
    return printable(text) + ("…" if len(content) > limit else "")
