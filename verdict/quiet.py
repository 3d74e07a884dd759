"""Is the source at rest? A judgement of records that still arrive would say nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from verdict.cluster import Spans
from verdict.model import Unknown

REST_SECONDS = 1.0
"""The least time between two looks at the source: a slow generator, too, must show that it runs."""


class Quiet:
    """Looks at something when made, and again when asked whether it has changed since."""

    def __init__(self, look: Callable[[], object]) -> None:
        self._look = look
        self._first = look()
        self._seen_at = time.monotonic()

    def changed(self) -> bool:
        """Look again, not before REST_SECONDS have passed since the first look."""
        time.sleep(max(0.0, self._seen_at + REST_SECONDS - time.monotonic()))
        return self._look() != self._first

    def require(self, reason: str) -> None:
        """Raise Unknown with the reason when it has changed."""
        if self.changed():
            raise Unknown(reason)


def refuse_gap(topic: str, spans: Spans) -> None:
    """Raise Unknown when a topic's first records are gone: what was made of them cannot be judged any more."""
    for partition, span in spans.items():
        if span.begin > 0:
            raise Unknown(
                f"{topic} partition {partition} begins at offset {span.begin}: its first records were deleted, "
                "so what became of them cannot be judged"
            )
