"""What holds for every test."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background makes them ignore Ctrl-C, and a program that a test starts would
# inherit that. The handler is Python's own.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
