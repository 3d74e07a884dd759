"""Watches a running stack while somebody looks, and hands the items on to every open page.

The samplers are those of measure/watch.py, and the inspector reads each checkpoint once; so a live page is drawn from
what a recording has. Nobody looks: nothing is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from measure.watch import Sample, sample_once

from page.items import Item, Items

KEPT_ITEMS = 20_000
"""About an hour: a checkpoint in four seconds, offsets twice a second."""
INTERVAL_SECONDS = 0.5
SLOW_SECONDS = 2.0
SILENT_SECONDS = 8.0
LINGER_SECONDS = 30.0
"""How long it goes on when the last page was closed: a reload loses nothing."""
MOST_PAGES = 16
_WAITING = 400
"""Messages that a page may be behind; a slower one is cut off, and comes back by itself."""
_SLOW = ("services",)
_END_SECONDS = 10.0


Follow = Callable[[Path], "Sequence[str] | None"]
"""The command with which the inspector follows the checkpoints, until the folder has the file `stop`; None: not now."""


class Full(Exception):
    """As many pages are open as one server serves."""


class Watching:
    """One stack, and the pages that look at it."""

    def __init__(self, samplers: dict[str, Callable[[], Sample]], follow: Follow) -> None:
        self._samplers, self._follow = samplers, follow
        self._items: deque[Item] = deque(maxlen=KEPT_ITEMS)
        self._maker = Items()
        self._lock = threading.Lock()
        self._pages: set[asyncio.Queue[str]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered: dict[str, float] = {}
        self._watched = threading.Event()
        self._ended = threading.Event()
        self._left_at = 0.0
        self._threads: list[threading.Thread] = []

    # The pages, in the loop of the server

    def begin(self) -> None:
        """Start the threads, which wait until somebody looks."""
        self._loop = asyncio.get_running_loop()
        for name, make in self._samplers.items():
            self._threads.append(threading.Thread(target=self._take, args=(name, make), daemon=True, name=name))
        self._threads.append(threading.Thread(target=self._read_checkpoints, daemon=True, name="checkpoints"))
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End the threads and the inspector."""
        self._ended.set()
        self._watched.set()
        # The inspector ends with its thread; a sampler may wait for a broker that is gone.
        self._threads[-1].join(timeout=_END_SECONDS)

    @contextlib.contextmanager
    def page(self) -> Iterator[asyncio.Queue[str]]:
        """Add a page; the queue has messages, the first of them with everything until now. Raises Full."""
        if len(self._pages) >= MOST_PAGES:
            raise Full
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=_WAITING)
        queue.put_nowait(_message("all", self.items()))
        self._pages.add(queue)
        self._watched.set()
        try:
            yield queue
        finally:
            self._pages.discard(queue)
            self._left_at = time.monotonic()

    def tick(self) -> str:
        """A message with the server's clock; and tell who has been silent, as a frozen broker is, for long."""
        now = time.time()
        for name, last in list(self._answered.items()):
            if now - last > SILENT_SECONDS:
                self.take(name, {"at": last, "unknown": f"no answer for more than {SILENT_SECONDS:g} s"})
        return f"event: tick\ndata: {json.dumps({'now': now})}\n\n"

    def items(self) -> list[Item]:
        """Everything that is kept."""
        return list(self._items)

    def _hand_on(self, items: list[Item]) -> None:
        # In the loop, as `page` is: each page gets an item once.
        self._items.extend(items)
        message = _message("more", items)
        for queue in list(self._pages):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._pages.discard(queue)

    # The stack, in threads

    def add(self, items: list[Item]) -> None:
        """Keep items and send them to every page."""
        if not items or self._loop is None:
            return
        with contextlib.suppress(RuntimeError):
            # The loop has ended.
            self._loop.call_soon_threadsafe(self._hand_on, items)

    def take(self, name: str, sample: dict[str, Any]) -> None:
        """Add the items of one sample."""
        with self._lock:
            found = self._maker.take(name, sample)
        self.add(found)

    def is_watched(self) -> bool:
        """Whether somebody looks, or did so a moment ago."""
        if not self._pages and time.monotonic() - self._left_at > LINGER_SECONDS:
            self._watched.clear()
        return self._watched.is_set() and not self._ended.is_set()

    def _take(self, name: str, make: Callable[[], Sample]) -> None:
        interval = SLOW_SECONDS if name in _SLOW else INTERVAL_SECONDS
        sample: Sample | None = None
        while not self._ended.is_set():
            self._watched.wait()
            begin = time.monotonic()
            # Made when it is needed first: a client of Kafka connects at once.
            sample = sample or make()
            self.take(name, sample_once(sample))
            self._answered[name] = time.time()
            self.is_watched()
            self._ended.wait(max(0.0, interval - (time.monotonic() - begin)))

    def _read_checkpoints(self) -> None:
        while not self._ended.is_set():
            self._watched.wait()
            with tempfile.TemporaryDirectory(prefix="faultline-page-") as folder:
                command = self._follow(Path(folder)) if self.is_watched() else None
                if command:
                    self._run_inspector(command, Path(folder))
            # It has ended by itself: the folder may not be there yet.
            self._ended.wait(SLOW_SECONDS)

    def _run_inspector(self, command: Sequence[str], folder: Path) -> None:
        """Read what the inspector prints until nobody looks; then it ends by the file `stop`."""
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None

        def stop_when_unwatched() -> None:
            while process.poll() is None and self.is_watched():
                self._ended.wait(1.0)
            (folder / "stop").touch()

        threading.Thread(target=stop_when_unwatched, daemon=True).start()
        for line in process.stdout:
            with contextlib.suppress(ValueError, KeyError):
                self.take("checkpoints", json.loads(line))
        try:
            process.wait(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _message(event: str, items: list[Item]) -> str:
    """A server-sent event; `now` is the server's clock."""
    data = json.dumps({"now": time.time(), "items": items}, separators=(",", ":"))
    return f"event: {event}\ndata: {data}\n\n"
