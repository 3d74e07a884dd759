"""Run a command until it ends or until standard input closes: `python -m labs.keeper COMMAND...`.

The lab holds the other end of standard input: however it ends, even by SIGKILL, the command ends with it.
The command is a process group of its own, which gets a SIGTERM, and a SIGKILL 20 seconds later.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

_TERM_SECONDS = 20


def main(command: list[str]) -> int:
    """Run the command; returns its exit code."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def end() -> None:
        os.read(sys.stdin.fileno(), 1)
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=_TERM_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            # It ended by itself.
            return

    # A Ctrl-C reaches the lab too, which then closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
