"""Rows one after the other on one stack, which is made clean where a row needs it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from contract.settings import PREFIX, ROOT
from stack.errors import StackError
from stack.messages import say
from stack.stack import open_stack

from faults.model import Outcome, Result, Row
from faults.phases import run_row
from faults.plan import USUAL, Planned
from faults.repair import generator_runs, heal, keep_settings, run, script


def run_rows(rows: Iterable[Planned], folder: Path) -> None:
    """Run the rows; each writes its results to its own folder in `folder`.

    The stack is made clean after a row that leaves a wrong one, around a row with settings of its own, and between a
    row that has failed and the next one.
    Raises StackError when the output is wrong already, or a script fails; KeyboardInterrupt after the repair.
    """
    was_up = open_stack({}).is_up()
    generated = was_up and generator_runs()
    keep_settings()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    first = True
    spoilt = failed = False
    own = USUAL
    usual = dict(os.environ)
    try:
        for planned in rows:
            row = planned.row
            new = spoilt or failed or planned.own != own
            if new and open_stack({}).home.marked():
                if not (spoilt or failed or own != USUAL):
                    _say_what_goes(row)
                script("reset.sh")
            failed, own = False, planned.own
            _set(usual, row.settings)
            script("up.sh")
            if first:
                _require_right()
                first = False
            if row.spoils:
                _say_what_goes(row)
            spoilt = row.spoils
            result = run_row(row, folder / row.name, planned.moment, installs=new)
            failed = result.outcome is Outcome.FAILED
            _show(result)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("repairing what is broken ...")
        heal()
        raise
    finally:
        _leave(spoilt=spoilt or own != USUAL, failed=failed, was_up=was_up, generated=generated, usual=usual)


def _say_what_goes(row: Row) -> None:
    say(f"note: {row.name} wants a new stack: scripts/reset.sh removes topics, checkpoints and outputs")


def _set(usual: Mapping[str, str], own: Sequence[tuple[str, str]]) -> None:
    """Choose these settings, and otherwise what was chosen before the matrix."""
    os.environ.clear()
    os.environ.update({**usual, **{PREFIX + name: value for name, value in own}})


def _leave(*, spoilt: bool, failed: bool, was_up: bool, generated: bool, usual: Mapping[str, str]) -> None:
    """Leave the stack as it was found, or as it is after a row that failed: to look into it."""
    if failed:
        say("the stack stays as it is, to look into it; scripts/reset.sh starts clean")
        return
    if spoilt:
        script("reset.sh")
        _set(usual, ())
        if was_up:
            script("up.sh")
    elif not was_up:
        script("down.sh")
    if was_up and generated and not generator_runs():
        script("generator_start.sh")


def _require_right() -> None:
    """Raise StackError when the output is wrong already: what a row finds could have been there before."""
    done = run([str(ROOT / "scripts" / "verdict.sh"), "all", "--as-is"], os.environ, 600)
    if done.returncode == 1:
        raise StackError(
            "the output of this stack is already wrong (scripts/verdict.sh all); scripts/reset.sh starts clean"
        )


def _show(result: Result) -> None:
    for check in result.checks:
        head, rest = ("ok      ", "") if check.ok else ("FAILED  ", f", expected {check.expected}")
        say(f"   {head}{check.what}: {check.seen}{rest}")
    for name, seconds in result.times.items():
        say(f"           {name}: {seconds} s")
    if result.reason:
        say(f"   {result.reason}")
    say(f"-> {result.row}: {result.outcome.value}; {result.folder}")
