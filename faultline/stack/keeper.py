"""The parent of one program: python -m faultline.stack.keeper --log FILE [--record FILE] [--tied] COMMAND...

Starts the command in its own session, rotates its log when it gets long, and writes its pid and exit code to the
record. With --tied it ends the command when standard input closes, which happens when its caller ends, even by SIGKILL.
Without --tied the death of a keeper changes nothing: the program continues, and is found by its mark.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

from faultline.files import replace_text
from faultline.stack.processes import KEEPER, MARK, SERVICE, STARTED, end, of_stack

LOG_BYTES = 20_000_000
"""At this size a log becomes FILE.1, and the program continues with an empty log."""
_LOOK_SECONDS = 5.0
_TERM_SECONDS = 20.0


def main() -> int:
    """Run the command line; returns the exit code of the command, 128 plus the signal's number after a signal."""
    parser = argparse.ArgumentParser(prog="faultline.stack.keeper")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    # The caller decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    environ = dict(os.environ)
    environ[SERVICE] = environ.get(SERVICE, "").replace(KEEPER, "", 1)
    with arguments.log.open("ab") as log:
        try:
            process = subprocess.Popen(
                arguments.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ,
                start_new_session=True,
                # A signal that we ignore would also be ignored by the command.
                preexec_fn=_default_signals,  # noqa: PLW1509  # no thread runs yet
            )  # fmt: skip
        except OSError as error:
            print(f"{' '.join(arguments.command)} cannot run: {error.strerror}", file=sys.stderr)
            return 126
    signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGTERM))
    _record(arguments.record, {"pid": process.pid, "command": arguments.command})
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as caller:
        caller.write(STARTED)
    # The caller reads up to this line, and nothing after it.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    if not arguments.tied:
        os.dup2(nowhere, sys.stderr.fileno())
    if arguments.tied:
        threading.Thread(target=_end_with_stdin, args=(process,), daemon=True).start()
    code = _keep(process, arguments.log)
    _record(arguments.record, {"pid": process.pid, "command": arguments.command, "exit_code": code})
    return code if code >= 0 else 128 - code


def _default_signals() -> None:
    # Whoever started the keeper may ignore them, and a JVM would inherit that: it could not be stopped.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _keep(process: subprocess.Popen[bytes], log: Path) -> int:
    while True:
        try:
            return process.wait(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            _rotate(log)


def _rotate(log: Path) -> None:
    """Empty a long log. The program appends (O_APPEND), so it continues at the new end of the file."""
    try:
        if log.stat().st_size > LOG_BYTES:
            shutil.copyfile(log, put_away(log))
            os.truncate(log, 0)
    except OSError as error:
        # A full disk or a removed log must not end the service.
        sys.stderr.write(f"keeper: {log}: {error}\n")


def put_away(log: Path) -> Path:
    """Return the file that has the earlier part of a log."""
    return log.with_name(log.name + ".1")


def _end_with_stdin(process: subprocess.Popen[bytes]) -> None:
    os.read(sys.stdin.fileno(), 1)
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=_TERM_SECONDS)
    except subprocess.TimeoutExpired:
        mark, service = os.environ[MARK], process.pid
        end(lambda: [each for each in of_stack(mark) if not each.service.startswith(KEEPER)], f"process {service}")


def _record(file: Path | None, content: dict[str, object]) -> None:
    if file is None:
        return
    try:
        replace_text(file, json.dumps(content) + "\n")
    except OSError as error:
        # On a full disk the service is still found by its mark.
        sys.stderr.write(f"keeper: {file}: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
