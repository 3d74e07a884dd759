"""Watches a running stack while somebody looks, and hands the items on to every open page.

The samplers are those of faultline/probes/watch.py, and the inspector reads each checkpoint once; so a live page is
drawn from the same data as a recording. The stack is asked only while somebody looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from faultline.page import following
from faultline.page.history import History
from faultline.player.items import Item, Items
from faultline.probes.watch import INTERVAL_SECONDS, Make, Sampler, sample_once

SLOW_SECONDS = 2.0
SILENT_SECONDS = 8.0
LINGER_SECONDS = 30.0
"""Seconds that watching goes on after the last page was closed: a reload loses nothing."""
MOST_PAGES = 16
WAITING = 400
"""Messages that a page may be behind; a slower one is cut off, and comes back by itself."""
_SLOW = ("services",)
_END_SECONDS = 15.0

Follow = Callable[[Path], "Sequence[str] | None"]
"""The command with which the inspector follows the checkpoints, until the folder has the file `stop`; None: not now."""


class Full(Exception):
    """The most pages are open that one server allows."""


class Watching:
    """One stack, and the pages that look at it. `which`: something that changes when another stack is up."""

    def __init__(self, samplers: Mapping[str, Make], follow: Follow, which: Callable[[], object] = bool) -> None:
        self._samplers = {name: Sampler(make, which) for name, make in samplers.items()}
        self._follow = follow
        self._history = History()
        self._maker = Items()
        self._making = threading.Lock()
        self._asked: dict[str, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of the pages, and of whether somebody looks.
        self._lock = threading.Lock()
        self._pages: set[asyncio.Queue[str]] = set()
        self._watched = threading.Event()
        self._left_at = 0.0
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    # The pages, in the loop of the server

    def begin(self) -> None:
        """Start the threads, which wait until somebody looks."""
        self._loop = asyncio.get_running_loop()
        for name, sampler in self._samplers.items():
            self._threads.append(threading.Thread(target=self._take, args=(name, sampler), daemon=True, name=name))
        self._threads.append(threading.Thread(target=self._look_for_silence, daemon=True, name="silence"))
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
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=WAITING)
        with self._lock:
            if len(self._pages) >= MOST_PAGES:
                raise Full
            queue.put_nowait(_message("all", self.items()))
            self._pages.add(queue)
            self._watched.set()
        try:
            yield queue
        finally:
            with self._lock:
                self._pages.discard(queue)
                self._left_at = time.monotonic()

    def has(self, queue: asyncio.Queue[str]) -> bool:
        """Return whether the page still gets messages: one that is too far behind does not."""
        return queue in self._pages

    def tick(self) -> str:
        """A message with the server's clock."""
        return f"event: tick\ndata: {json.dumps({'now': time.time()})}\n\n"

    def items(self) -> list[Item]:
        """All items of the history."""
        return self._history.all()

    def _hand_on(self, items: list[Item]) -> None:
        # In the loop, as `page` is: each page gets an item once.
        self._history.add(items)
        self._send(_message("more", items))

    def _start_over(self, items: list[Item]) -> None:
        self._history.clear()
        self._history.add(items)
        self._send(_message("all", items))

    def _send(self, message: str) -> None:
        for queue in list(self._pages):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                with self._lock:
                    self._pages.discard(queue)

    # The stack, in threads

    def add(self, items: list[Item]) -> None:
        """Keep items and send them to every page."""
        if items:
            self._in_loop(self._hand_on, items)

    def _in_loop(self, what: Callable[[list[Item]], None], items: list[Item]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                # The loop has ended.
                self._loop.call_soon_threadsafe(what, items)

    def take(self, name: str, sample: dict[str, Any]) -> None:
        """Add the items of one sample; those of another log begin again."""
        with self._making:
            if self._maker.is_another_log(name, sample):
                self._maker = Items()
                self._in_loop(self._start_over, self._maker.take(name, sample))
            else:
                self.add(self._maker.take(name, sample))

    def is_watched(self) -> bool:
        """Return whether somebody looks, or did so a moment ago."""
        with self._lock:
            if self._ended.is_set():
                return False
            if not self._pages and time.monotonic() - self._left_at > LINGER_SECONDS:
                self._watched.clear()
            return self._watched.is_set()

    def _take(self, name: str, sampler: Sampler) -> None:
        interval = SLOW_SECONDS if name in _SLOW else INTERVAL_SECONDS
        while not self._ended.is_set():
            self._watched.wait()
            begin = time.monotonic()
            self._asked[name] = time.time()
            sample = sample_once(sampler)
            del self._asked[name]
            self._try(name, sample)
            self.is_watched()
            self._ended.wait(max(0.0, interval - (time.monotonic() - begin)))

    def _try(self, name: str, sample: dict[str, Any]) -> None:
        """Take a sample; one that is not as expected is shown, and the next one is taken all the same."""
        try:
            self.take(name, sample)
        except Exception as error:  # the page shows it
            self.take(name, {"at": time.time(), "unknown": f"{type(error).__name__}: {error}"})

    def _look_for_silence(self) -> None:
        while not self._ended.wait(1.0):
            self.tell_silence()

    def tell_silence(self) -> None:
        """Tell who has left a question without an answer for long, as a frozen broker does."""
        for name, at in list(self._asked.items()):
            # A reason that is shown stays.
            if time.time() - at > SILENT_SECONDS and not self._maker.is_unknown(name):
                self.take(name, {"at": at, "unknown": f"no answer for more than {SILENT_SECONDS:g} s"})

    def _read_checkpoints(self) -> None:
        while not self._ended.is_set():
            self._watched.wait()
            try:
                with tempfile.TemporaryDirectory(prefix="faultline-page-") as folder:
                    command = self._follow(Path(folder)) if self.is_watched() else None
                    if command:
                        following.run(
                            command, Path(folder), self.is_watched, lambda line: self._try("checkpoints", line)
                        )
            except Exception as error:  # the page shows it
                self.take("checkpoints", {"at": time.time(), "unknown": f"{type(error).__name__}: {error}"})
            # It has ended by itself: the folder may not be there yet.
            self._ended.wait(SLOW_SECONDS)


def _message(event: str, items: list[Item]) -> str:
    """A server-sent event; `now` is the server's clock."""
    data = json.dumps({"now": time.time(), "items": items}, separators=(",", ":"))
    return f"event: {event}\ndata: {data}\n\n"
