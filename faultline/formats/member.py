"""Print a member of the JSON document on stdin, for the walkthroughs. Standard library, Python 3.9.

Usage: python3 -m faultline.formats.member [STEP...]

Each STEP goes one level down: a name or the number of an element; NAME=VALUE, the last element of a list that has this
member; `*`, every element. Each value is a line: a text as it is, anything else as JSON. An object is a line
`NAME=VALUE` for each member, by name, and a list a line for each element.
Exit codes: 0 printed, 1 there is no such member, or it is null.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from faultline.command import CommandError, run


class NoMember(CommandError):
    """The document has no such member; the message names it."""

    code = 1


def members(document: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Yield what the steps lead to, without nulls: one value, or more after a `*`."""
    if not steps:
        yield from () if document is None else (document,)
        return
    step, *others = steps
    name, is_choice, value = step.partition("=")
    found: list[Any] = []
    if isinstance(document, dict):
        found = [document[step]] if step in document else []
    elif isinstance(document, list) and step == "*":
        found = document
    elif isinstance(document, list) and is_choice:
        found = [each for each in document if name in each and _text(each[name]) == value][-1:]
    elif isinstance(document, list) and step.isdecimal():
        found = document[int(step) : int(step) + 1]
    for each in found:
        yield from members(each, others)


def lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value."""
    if isinstance(value, dict):
        yield from (f"{name}={_text(each)}" for name, each in sorted(value.items()))
    elif isinstance(value, list):
        yield from map(_text, value)
    else:
        yield _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def main(steps: Sequence[str]) -> int:
    """Print the member; returns the exit code. Raises NoMember."""
    found = list(members(json.load(sys.stdin), steps))
    if not found:
        raise NoMember(f"there is no {' '.join(steps)} in the answer")
    for value in found:
        for line in lines(value):
            print(line)
    return 0


if __name__ == "__main__":
    run("member", lambda: main(sys.argv[1:]))
