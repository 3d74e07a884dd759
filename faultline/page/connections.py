"""Closes silent connections: each takes a place, and the server has a fixed number of places."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0
"""Time limit for a request to arrive, in seconds."""


class Impatient(H11Protocol):  # type: ignore[misc]  # uvicorn is in another environment
    """Closes a connection on which no whole request comes in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request; after an answer, begin to wait for the rest of the next one."""
        super().data_received(data)
        if self._deadline is None and self._waits():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _waits(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        # Between two requests uvicorn has a limit of its own.
        if self._waits() and self.timeout_keep_alive_task is None:
            self.transport.close()
