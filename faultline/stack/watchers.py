"""The watchers of a stack, beside a program that breaks it or shows it, on either backend.

Usage: python -m faultline.stack.watchers samples FOLDER SECONDS
       python -m faultline.stack.watchers checkpoints FOLDER [--words]

`samples` go to files in FOLDER: faultline/probes/watch.py. `checkpoints` are printed whenever other ones are retained:
faultline/inspector/flink/follow.py; with `--words`, FOLDER gets the inspector's words on each, in
`inspected/<job id>/chk-N.txt`. Both end when FOLDER has the file `stop`. Who asks for samples or words holds stdin
open: when that closes, the program ends too.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from faultline.command import Flags, run
from faultline.stack.stack import open_stack
from faultline.stop import interrupt_once


def _end_with_stdin() -> None:
    """From now on end as by SIGTERM when stdin closes: whoever started this program is gone, maybe by SIGKILL."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code of the program that watches."""
    interrupt_once()
    parser = Flags("watchers", prog="watchers", description="Watch a stack.")
    parser.add_argument("what", choices=("samples", "checkpoints"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("seconds", type=float, nargs="?", default=3600.0)
    parser.add_argument("--words", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.words or chosen.what == "samples":
        _end_with_stdin()
    folder, backend = str(chosen.folder), open_stack().backend
    if chosen.what == "samples":
        command = ["python", "-m", "faultline.probes.watch", folder, "--limit", str(chosen.seconds)]
        return backend.tool(command, writable=[chosen.folder]).returncode
    command = ["python", "-m", "faultline.inspector.flink", "follow", "--until", f"{folder}/stop"]
    command += ["--words", f"{folder}/inspected"] if chosen.words else []
    return backend.tool(command, environment="flink", writable=[chosen.folder]).returncode


if __name__ == "__main__":
    run("watchers", main)
