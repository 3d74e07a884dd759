"""One store for many judgements of a process: each makes its tables again, and opening a store takes time."""

from __future__ import annotations

import atexit
from contextlib import ExitStack

from faultline.verdict.store import Store, open_store

_JUDGEMENTS = 15
"""DuckDB gets slower with each table that was replaced; after so many judgements a fresh store is faster."""


class SharedStore:
    """Hands out a store in memory, and a fresh one after some judgements."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._store: Store | None = None
        self._used = 0
        atexit.register(self.close)

    def get(self) -> Store:
        """Give the store for one judgement."""
        if self._store is None or self._used >= _JUDGEMENTS:
            self.close()
            self._store = self._stack.enter_context(open_store(in_memory=True))
        self._used += 1
        return self._store

    def close(self) -> None:
        """Close the store; DuckDB reports a connection that outlives its module as a leak."""
        self._stack.close()
        self._store, self._used = None, 0


shared_store = SharedStore()
