"""Cut a failing schedule down to the fewest faults that still fail (delta debugging, Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faultline.faults.schedule import Strike


def shrink(
    strikes: Sequence[Strike], fails: Callable[[Sequence[Strike]], bool], has_time: Callable[[], bool]
) -> list[Strike]:
    """Return the smallest failing part that was found. `fails`: whether a part fails; `has_time`: whether to go on."""
    failing = list(strikes)
    pieces = 2
    while len(failing) >= 2 and has_time():
        size = max(1, len(failing) // pieces)
        parts = [failing[begin : begin + size] for begin in range(0, len(failing), size)]
        smaller = _first_failing(parts, fails, has_time)
        if smaller is not None:
            failing, pieces = smaller, 2
            continue
        without = [[s for s in failing if s not in part] for part in parts] if len(parts) > 2 else []
        smaller = _first_failing(without, fails, has_time)
        if smaller is not None:
            failing, pieces = smaller, max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(len(failing), pieces * 2)
    return failing


def _first_failing(
    candidates: Sequence[list[Strike]], fails: Callable[[Sequence[Strike]], bool], has_time: Callable[[], bool]
) -> list[Strike] | None:
    for candidate in candidates:
        if candidate and has_time() and fails(candidate):
            return candidate
    return None
