"""CPU time of a service's processes and of programs, and whether something else kept the machine busy meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from faultline.settings import ROOT
from faultline.stack.errors import StackError
from faultline.stack.processes import of_stack

_DISTURBED_CORES = 0.2
"""From this many cores on, other programs are a disturbance: the engine, the shell and this program need some, too."""
_LOOK_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_NUMBER = re.compile(r"[#0-9/ (\[\]-]+$")


def _times(pids: Iterator[int]) -> float:
    total = 0.0
    for pid in pids:
        try:
            # Children that have ended are in the times of their parent.
            total += sum(psutil.Process(pid).cpu_times()[:4])
        except psutil.Error:
            continue
    return total


def service_seconds(mark: str, service: str) -> float:
    """Return the CPU seconds so far of a service of a stack: its processes, Python workers too."""
    return _times(process.pid for process in of_stack(mark) if process.service == service)


def seconds_by_service(mark: str) -> dict[str, float]:
    """Return the CPU seconds so far of each service of a stack, in one look at the system's processes."""
    found: dict[str, float] = defaultdict(float)
    for process in of_stack(mark):
        found[process.service] += _times(iter([process.pid]))
    return found


Threads = Mapping[int, tuple[str, float]]
"""By the id of a thread: the first 15 characters of its name, and its CPU seconds so far."""


def threads_of(mark: str, *services: str) -> Threads:
    """Look at all threads of services of a stack (Linux)."""
    found: dict[int, tuple[str, float]] = {}
    for process in of_stack(mark):
        if process.service not in services:
            continue
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            user, system = rest.split()[11:13]
            found[int(task.name)] = name, (int(user) + int(system)) / _TICKS
    return found


def seconds_by_name(before: Threads, now: Threads) -> dict[str, float]:
    """Return the CPU seconds between two looks by the threads' names in the second, without numbers at their ends.

    A pool renames its threads.
    """
    found: dict[str, float] = defaultdict(float)
    for thread, (name, seconds) in now.items():
        found[_NUMBER.sub("", name)] += seconds - before.get(thread, ("", 0.0))[1]
    return found


def seconds_of_program(name: str, command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Run a program to its end; returns its CPU seconds. Raises StackError with its last lines when it fails."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=words, stderr=words)
        seconds = _seconds_until_end(process)
        words.seek(0)
        tail = words.read().decode(errors="replace").strip().splitlines()[-3:]
    if process.returncode:
        raise StackError(f"{name} failed: {' / '.join(tail)}", 1)
    return seconds


def _seconds_until_end(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process has ended; returns the CPU seconds of it and its children."""
    # The times of a process are lost when it ends, unless its parent waits for it: so the last look counts.
    spent: dict[int, float] = {}
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for member in (watched, *watched.children(recursive=True)):
                spent[member.pid] = sum(member.cpu_times()[:2])
        except psutil.Error:
            pass
        time.sleep(_LOOK_SECONDS)
    return sum(spent.values())


class Disturbance:
    """Watches how many cores are busy with other things than these stacks and this program."""

    def __init__(self, *marks: str) -> None:
        self._marks = marks
        self._began = time.monotonic()
        self._busy, self._own = self._look()

    def _look(self) -> tuple[float, float]:
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        me = psutil.Process()
        family = {me.pid, *(child.pid for child in me.children(recursive=True))}
        stacks = {process.pid for mark in self._marks for process in of_stack(mark)}
        return busy, _times(iter(family | stacks))

    def cores(self) -> float:
        """Return the average number of cores that were busy with something else so far."""
        busy, own = self._look()
        return max(0.0, (busy - self._busy) - (own - self._own)) / max(0.1, time.monotonic() - self._began)

    def disturbed(self) -> bool:
        """Return whether that is enough to doubt the measurement."""
        return self.cores() > _DISTURBED_CORES
