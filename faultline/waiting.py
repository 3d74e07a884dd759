"""Wait for a condition: all waits of the product, its jobs and its tests. Standard library, Python 3.9."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from faultline.command import CommandError
from faultline.messages import say

LOOK_SECONDS = 0.2
_FIRST_WORD_SECONDS = 3.0
_NEXT_WORD_SECONDS = 10.0
T = TypeVar("T")


class TimedOut(CommandError):
    """The condition of a wait did not hold in time; the message names the condition, the limit and the reason."""


class Waiting:
    """Says what a wait is for when it takes longer than 3 s, and then each 10 s."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._next = self._begin + _FIRST_WORD_SECONDS

    def say(self, what: str) -> None:
        """Print the words, with the seconds since the begin of the wait, when it is time for them."""
        now = time.monotonic()
        if now >= self._next:
            say(f"   waiting for {what}: {now - self._begin:.0f} s")
            self._next = now + _NEXT_WORD_SECONDS


def attempts(seconds: float, every: float = LOOK_SECONDS) -> Iterator[None]:
    """Yield at once, then each `every` seconds, and for the last time after `seconds`.

    For a loop that ends early when its attempt succeeds; what follows the loop is the failure.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(min(every, max(0.0, end - time.monotonic())))
    yield


def wait_until(
    look: Callable[[], T | None],
    what: str,
    *,
    seconds: float,
    explain: Callable[[], str] | None = None,
    every: float = LOOK_SECONDS,
    despite: tuple[type[Exception], ...] = (),
) -> T:
    """Return the first answer of `look` that is true, and print `what` it waits for when that takes long.

    It looks each `every` seconds; a look that raises one of `despite` has no answer. Raises TimedOut after `seconds`;
    `explain` then returns the reason.
    """
    waiting = Waiting()
    for _ in attempts(seconds, every):
        with suppress(*despite):
            if found := look():
                return found
        waiting.say(what)
    reason = explain() if explain else ""
    raise TimedOut(f"timed out after {seconds:g} s waiting for {what}" + (f": {reason}" if reason else ""))
