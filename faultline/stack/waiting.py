"""Wait for a condition; every wait of the project uses this."""

from __future__ import annotations

import time
from typing import Callable

from faultline.stack.errors import StackError
from faultline.stack.messages import say

_LOOK_SECONDS = 0.2
_FIRST_WORD_SECONDS = 3.0
_NEXT_WORD_SECONDS = 10.0


def wait_until(
    condition: Callable[[], bool],
    what: str,
    *,
    seconds: float,
    explain: Callable[[], str] | None = None,
    every: float = _LOOK_SECONDS,
) -> None:
    """Return as soon as the condition holds; print what it waits for when that takes longer than 3 s.

    It looks `every` so many seconds. Raises StackError after `seconds`; `explain` then returns the reason.
    """
    begin = time.monotonic()
    next_word = begin + _FIRST_WORD_SECONDS
    while not condition():
        now = time.monotonic()
        if now >= begin + seconds:
            reason = explain() if explain else ""
            raise StackError(f"timed out after {seconds:g} s waiting for {what}" + (f": {reason}" if reason else ""))
        if now >= next_word:
            say(f"   waiting for {what}: {now - begin:.0f} s")
            next_word = now + _NEXT_WORD_SECONDS
        time.sleep(every)
