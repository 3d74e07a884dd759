"""The items that a live page begins with: those of about an hour, and older ones that are still true."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from faultline.player.items import Item

MOST_ITEMS = 20_000
"""About an hour: a checkpoint in four seconds, offsets twice a second."""


class History:
    """Keeps items; of those that had to go, the last of each kind, source and engine stays."""

    def __init__(self, most: int = MOST_ITEMS) -> None:
        self._most = most
        self._items: deque[Item] = deque()
        self._gone: dict[tuple[object, ...], Item] = {}

    def add(self, items: Sequence[Item]) -> None:
        """Keep items, the newest last."""
        for item in items:
            self._items.append(item)
            if len(self._items) > self._most:
                gone = self._items.popleft()
                self._gone[gone["kind"], gone.get("source"), gone.get("engine")] = gone

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._gone.clear()

    def all(self) -> list[Item]:
        """All items of the history."""
        return [*sorted(self._gone.values(), key=lambda item: float(item["at"])), *self._items]
