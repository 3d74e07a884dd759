"""The signals that ask a program to end."""

from __future__ import annotations

import signal


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
