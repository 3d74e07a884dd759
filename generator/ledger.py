"""The ledger of one run: a line before each visit is sent, and a line once the broker has it."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from faultline.command import CommandError
from faultline.formats.digest import record_digest
from faultline.formats.ledger import SUFFIX, acked_line, sent_line, topic_line
from generator.visits import Record

# write(2) like os.write, but without releasing the interpreter's lock: released for each line, it goes back and forth
# between the two threads, which costs a fifth of the rate (measured).
_system_write = ctypes.PyDLL(None, use_errno=True).write
_system_write.argtypes, _system_write.restype = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t], ctypes.c_ssize_t


class LedgerError(CommandError):
    """The ledger cannot be written, so nothing more can be sent; the message is one line for the user."""


def clock() -> int:
    """Wall-clock time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def stamp(moment: int) -> str:
    """Format milliseconds since the epoch as `20260101T000000.000Z`: for names that sort by time."""
    return f"{datetime.fromtimestamp(moment // 1000, UTC):%Y%m%dT%H%M%S}.{moment % 1000:03d}Z"


class Ledger:
    """One file in the form of `faultline.formats.ledger`, for the thread that sends and for the client's own thread.

    Each line is one write to the system, not to a buffer of this process: a SIGKILL loses none of them. The file
    stays open until the process ends, since the client may report an acknowledgement until then.
    """

    def __init__(self, folder: Path, topic: str, topic_id: str) -> None:
        """Make the file and write its first line. Raises LedgerError."""
        started = clock()
        self.path = folder / topic / f"{stamp(started)}-{os.getpid()}{SUFFIX}"
        self._count = 0
        self._failure: str | None = None
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Never reuse the file of another run: its numbers begin at 0 too.
            self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be made: {error.strerror}; nothing was sent") from None
        self._write(topic_line(topic, topic_id, started))

    def sent(self, partition: int, record: Record) -> int:
        """Write the line of a record that is about to be sent, and return its number. Raises LedgerError."""
        number = self._count
        content = record_digest(record.key, record.value)
        self._write(
            sent_line(number, partition, timestamp=record.timestamp, clock=clock(), digest=content, key=record.key)
        )
        self._count += 1
        return number

    def acked(self, number: int, partition: int, offset: int) -> None:
        """Write the line of a record that the broker has acknowledged. Raises LedgerError."""
        self._write(acked_line(number, partition, offset, clock()))

    def _write(self, line: str) -> None:
        content = line.encode()
        # No line follows a torn line: only the last line of a file may be torn.
        with self._lock:
            if self._failure is None:
                written = _system_write(self._file, content, len(content))
                while written < 0 and ctypes.get_errno() == errno.EINTR:
                    written = _system_write(self._file, content, len(content))
                if written < 0:
                    self._failure = os.strerror(ctypes.get_errno())
                elif written < len(content):
                    self._failure = "the disk is full, or the file may not grow"
        if self._failure is not None:
            raise LedgerError(f"the ledger {self.path} cannot be written: {self._failure}; nothing more was sent")
