"""The signals that ask a program to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from faultline.command import open_streams

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, the end that another program asks for, and a terminal that closes."""


def end_at_once(name: str, end_others: Callable[[], None] = lambda: None) -> None:
    """From now on end the process at the first signal that asks for it, also while native code runs.

    For a program that leaves nothing behind when it is killed. `end_others` ends the processes that it has started. The
    exit code is 128 and the number of the signal.
    """
    # The pipe must not take the number of a closed stream.
    open_streams()
    # A handler of Python's would wait until the native code returns. What the process inherits as ignored stays so.
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> None:
        while (number := os.read(reader, 1)[0]) not in ENDING:
            pass
        os.write(sys.stderr.fileno(), f"{name}: interrupted\n".encode())
        end_others()
        os._exit(128 + number)

    threading.Thread(target=wait, daemon=True).start()


def interrupt_once() -> None:
    """From now on let the first signal that asks for the end raise KeyboardInterrupt, with its number.

    Later ones are ignored, so that they do not interrupt the clean-up. What the process inherits as ignored stays so.
    """

    def interrupt(number: int, _frame: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


class Stop:
    """Set by the first SIGTERM or SIGINT; a second one ends the process at once."""

    def __init__(self) -> None:
        self.requested = False
        self.listen()

    def listen(self) -> None:
        """Install the handlers; again after a library that has replaced them."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        self.requested = True
        signal.signal(number, signal.SIG_DFL)
