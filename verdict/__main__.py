"""`python -m verdict`: see verdict/program.py."""

from __future__ import annotations

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Until the program listens, Ctrl-C just ends it: an import that is interrupted would print a stack trace.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from contract.command import open_streams, run
from contract.stop import end_at_once
from verdict.loading import kill_readers
from verdict.program import main

if __name__ == "__main__":
    open_streams()
    end_at_once("verdict", kill_readers)
    run("verdict", main)
