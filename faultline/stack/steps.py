"""The steps of a start, printed as they are done, each with the seconds since it began."""

from __future__ import annotations

import time

from faultline.messages import say


class Steps:
    """Begins to count when it is made."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._printed: set[str] = set()

    def done(self, step: str) -> None:
        """Print a step, the first time that it is done."""
        if step not in self._printed:
            self._printed.add(step)
            say(f"   {time.monotonic() - self._begin:5.1f} s  {step}")
