"""Processes of a stack, found in the system by a mark in their environment, not by a file.

Every process of a service inherits two variables: the stack's id and the service's name. So children that leave the
process group are found too (PySpark's workers do), the loss of a keeper has no effect, and a pid that was reused by
another program is never taken for ours.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from faultline.stack.errors import StackError
from faultline.waiting import attempts, wait_until

MARK, SERVICE = "FAULTLINE_MARK", "FAULTLINE_SERVICE"
KEEPER = "keeper:"
"""Prefix of a service's name that marks the process of its keeper."""

STARTED = "started\n"
"""The line that a keeper prints once its program runs."""

_PROC = Path("/proc")
_KILL_SECONDS = 60.0
_EXEC_SECONDS = 1.0
_FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")


@dataclass(frozen=True)
class Process:
    """A running process of a stack. `service` may have the prefix KEEPER; `age_order`: smaller is older."""

    pid: int
    service: str
    stopped: bool
    age_order: int
    resident_bytes: int


def of_stack(mark: str) -> list[Process]:
    """Find every process of a stack that this user may see, oldest first; zombies are no longer processes."""
    found = _from_proc(mark) if _PROC.joinpath("self", "environ").exists() else _from_ps(mark)
    return sorted(found, key=lambda process: process.age_order)


def _from_proc(mark: str) -> Iterator[Process]:
    wanted, page_bytes = mark.encode(), os.sysconf("SC_PAGE_SIZE")
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields, environment = _look(folder)
        except OSError:
            # It belongs to another user, or has just ended.
            continue
        if _value(MARK, environment) != wanted:
            continue
        state, started, pages = fields[0], int(fields[19]), int(fields[21])
        if state not in (b"Z", b"X"):
            service = _value(SERVICE, environment).decode()
            yield Process(int(folder.name), service, state in (b"T", b"t"), started, pages * page_bytes)


def _fields(folder: Path) -> list[bytes]:
    """Read a process's fields of proc(5) from the third on; the name before them may contain anything."""
    return (folder / "stat").read_bytes().rpartition(b")")[2].split()


def _look(folder: Path) -> tuple[list[bytes], bytes]:
    """Read a process's fields, and its environment as a whole. A zombie or a kernel thread has none.

    While a process begins to execute another program, there is none for a moment, or a part of it: look again. On a
    busy machine this takes longer than a few milliseconds, and such a process is not one that has ended.
    """
    fields, content = _fields(folder), b""
    for _ in attempts(_EXEC_SECONDS, 0.001):
        if not int(fields[20]):
            break
        content = (folder / "environ").read_bytes()
        before, fields = fields, _fields(folder)
        # Where it begins and ends in the process's memory; another program has it elsewhere.
        first, last = int(fields[47]), int(fields[48])
        if before[47:49] == fields[47:49] and 0 < first == last - len(content):
            break
    return fields, content


def _value(name: str, environment: bytes) -> bytes:
    """Read a variable; empty when it is not there. While bash starts it puts a zero where each name ends."""
    found = re.search(rb"(?:^|\0)" + name.encode() + rb"[=\0]([^\0]*)", environment)
    return found[1] if found else b""


def _from_ps(mark: str) -> Iterator[Process]:
    """Use ps, where there is no /proc (macOS): `-E` shows the environment of the user's own processes."""
    done = subprocess.run(
        ["ps", "-axwwE", "-o", "pid=,stat=,rss=,command="], capture_output=True, text=True, check=False
    )
    for line in done.stdout.splitlines():
        words = line.split()
        if f"{MARK}={mark}" in words and not words[1].startswith("Z"):
            service = next((word[len(SERVICE) + 1 :] for word in words if word.startswith(f"{SERVICE}=")), "")
            yield Process(int(words[0]), service, words[1].startswith("T"), int(words[0]), int(words[2]) * 1024)


def send(processes: Sequence[Process], number: signal.Signals) -> None:
    """Send a signal to each; processes that have ended meanwhile are skipped, also where another has the pid now."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            if _is_still(process):
                os.kill(process.pid, number)


def _is_still(process: Process) -> bool:
    """Return whether the process still has its pid: another one has another start. Without /proc, take it for so."""
    try:
        return int(_fields(_PROC / str(process.pid))[19]) == process.age_order
    except OSError:
        return not _PROC.joinpath("self", "environ").exists()


def end(find: Callable[[], Sequence[Process]], what: str) -> None:
    """SIGKILL the processes that `find` returns until it returns none: a process may start another meanwhile."""

    def gone() -> bool:
        left = find()
        send(left, signal.SIGKILL)
        return not left

    wait_until(gone, f"the end of {what}", seconds=_KILL_SECONDS)


def keep(
    arguments: Sequence[str], environ: Mapping[str, str], mark: str, service: str, folder: Path, *, tied: bool = False
) -> subprocess.Popen[str]:
    """Start a program under a keeper (faultline/stack/keeper.py); returns the keeper once the program runs.

    Raises StackError when the program cannot be started.
    """
    keeper = subprocess.Popen(
        [sys.executable, "-m", "faultline.stack.keeper", *(["--tied"] if tied else []), *arguments],
        env={**environ, MARK: mark, SERVICE: KEEPER + service},
        cwd=folder,
        stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if tied else subprocess.PIPE,
        text=True,
        # A Ctrl-C at the terminal is for the caller of the program, not for the program.
        start_new_session=True,
    )
    assert keeper.stdout is not None
    with keeper.stdout:
        if keeper.stdout.readline() != STARTED:
            raise StackError(f"{service} cannot be started: {_last_words(keeper)}")
    if keeper.stderr:
        keeper.stderr.close()
    return keeper


def _last_words(keeper: subprocess.Popen[str]) -> str:
    words = ""
    if keeper.stderr:
        with keeper.stderr:
            words = keeper.stderr.read()
    if keeper.stdin:
        keeper.stdin.close()
    keeper.wait()
    return (words.strip().splitlines() or ["see the lines above"])[-1]


class Program:
    """A program that ends with this one, with all of its children. Its output goes to the file `log`."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path, folder: Path) -> None:
        self.log = log
        self._mark = uuid.uuid4().hex
        log.write_bytes(b"")
        self._process = keep(["--log", str(log), *command], environ, self._mark, "program", folder, tied=True)

    def words(self) -> str:
        """Return its output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_line(self) -> str:
        """Return its last line that is no frame of a Java error; empty when there is no output."""
        return next((line for line in reversed(self.words().strip().splitlines()) if not _FRAME.match(line)), "")

    @property
    def running(self) -> bool:
        """True when it has not ended."""
        return self._process.poll() is None

    def wait_for(self, condition: Callable[[], bool], what: str, *, seconds: float) -> None:
        """Return once the condition holds. Raises StackError when the program ends first, TimedOut."""

        def met_or_ended() -> bool:
            return condition() or not self.running

        def last_words() -> str:
            return f"its last line: {self.last_line()}; see {self.log}"

        wait_until(met_or_ended, what, seconds=seconds, explain=last_words)
        if not self.running and not condition():
            raise StackError(
                f"the program ended (exit code {self._process.returncode}) before {what}: {self.last_line()}; "
                f"see {self.log}"
            )

    def kill(self) -> int:
        """SIGKILL to the program and all of its children; returns the exit code."""
        end(self.processes, self.log.stem)
        return self.wait(seconds=_KILL_SECONDS)

    def processes(self) -> list[Process]:
        """The program and all of its children that are running."""
        return [process for process in of_stack(self._mark) if not process.service.startswith(KEEPER)]

    def terminate(self) -> None:
        """SIGTERM to the program, passed on by its keeper."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, *, seconds: float) -> int:
        """Wait for its end; returns the exit code, below 0 after a signal. Raises StackError when it takes too long."""
        try:
            code = self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise StackError(f"{self.log.stem} did not end within {seconds:g} s; see {self.log}") from None
        return 128 - code if code > 128 else code

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, *, seconds: float = 0.0) -> None:
        """End it: SIGTERM, then SIGKILL when it has not ended in time."""
        if self.running and seconds:
            self.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=seconds)
        # Children that are still running end too.
        end(self.processes, self.log.stem)
        if self._process.stdin is not None:
            # Its keeper ends a program that cannot be seen from here.
            self._process.stdin.close()
        self.wait(seconds=_KILL_SECONDS)
