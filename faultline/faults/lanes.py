"""Several stacks side by side that share the rows of a run: rows mostly wait."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from faultline.faults.lane import CLAIMS
from faultline.faults.plan import Planned
from faultline.faults.repair import pinned, quietly
from faultline.messages import say
from faultline.settings import ROOT, as_environment
from faultline.stack.errors import StackError
from faultline.stack.home import Home
from faultline.stack.own import own_environment
from faultline.stack.preflight import available_mebibytes
from faultline.stack.services import mebibytes
from faultline.stack.stack import Stack, open_stack
from faultline.stop import ENDING

MOST_STACKS = 8


def that_fit(stack: Stack, rows: Sequence[Planned]) -> int:
    """Return the number of stacks that can share the rows here.

    That is one for each core, as long as the memory has room for so many of the largest stack that a row needs.
    """
    largest = max(mebibytes(stack.having(dict(each.row.settings)).settings.values) for each in rows)
    available = available_mebibytes()
    if available is None:
        return 1
    return max(1, min(MOST_STACKS, os.cpu_count() or 1, available // largest))


def run_side_by_side(
    stack: Stack, names: Sequence[str], folder: Path, *, seed: int, mode: str, stacks: int, may_reset: bool
) -> None:
    """Run the rows on so many stacks: the one that runs or comes up here, and new ones below `folder`.

    Each line of their messages begins with the number of the stack. A new stack is removed at the end, unless its last
    row has failed. Raises StackError when one could not run its rows; KeyboardInterrupt after all have repaired.
    """
    (folder / CLAIMS).mkdir(parents=True)
    usual = pinned(stack).variables
    command = [
        sys.executable,
        "-m",
        "faultline.faults.lane",
        str(folder),
        str(seed),
        mode,
        "reset" if may_reset else "keep",
        *names,
    ]
    environments = [
        usual,
        *(own_environment(_home(folder, number), {}, usual, stack.address) for number in range(2, stacks + 1)),
    ]
    lanes: list[subprocess.Popen[str]] = []
    printers: list[threading.Thread] = []
    with _interrupting(lanes) as interrupted:
        for number, environ in enumerate(environments, 1):
            if interrupted():
                break
            lane = subprocess.Popen(
                command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            lanes.append(lane)
            for pipe in (lane.stdout, lane.stderr):
                printers.append(threading.Thread(target=_print, args=(pipe, number)))
                printers[-1].start()
        if interrupted() and lanes:
            # It may have been on its way when the others were interrupted.
            lanes[-1].send_signal(signal.SIGTERM)
        codes = [lane.wait() for lane in lanes]
    for printer in printers:
        printer.join()
    shutil.rmtree(folder / CLAIMS)
    for number in range(2, stacks + 1):
        if _home(folder, number).exists():
            _remove(Home(_home(folder, number)), usual)
    if 130 in codes or len(codes) < stacks:
        raise KeyboardInterrupt
    if wrong := [str(number) for number, code in enumerate(codes, 1) if code]:
        raise StackError(f"stack {', '.join(wrong)} could not run its rows; its last lines say why")


@contextmanager
def _interrupting(lanes: Sequence[subprocess.Popen[str]]) -> Iterator[Callable[[], bool]]:
    """Pass Ctrl-C on to the lanes that run, once: a second one must not end a repair. Yields whether there was one.

    A terminal does not reach their sessions.
    """
    passed = False

    def interrupt(*_: object) -> None:
        nonlocal passed
        if not passed:
            passed = True
            for lane in lanes:
                lane.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, interrupt) for number in ENDING}
    try:
        yield lambda: passed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _home(folder: Path, number: int) -> Path:
    return folder / f"stack-{number}"


def _remove(home: Home, usual: Mapping[str, str]) -> None:
    """Remove a stack that is down, with all that it has in its engine. Raises StackError."""
    if home.up() is None:
        stack = open_stack({}, {**usual, **as_environment({"HOME": str(home.root)})})
        quietly(f"remove {home.root}", functools.partial(stack.down, wipe=True))
        shutil.rmtree(home.root)


def _print(pipe: IO[str] | None, number: int) -> None:
    for line in pipe or ():
        say(f"[{number}] {line.rstrip()}")
