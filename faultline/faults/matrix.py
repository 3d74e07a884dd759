"""Rows one after the other on one stack, which is made clean where a row needs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from faultline.faults.model import Outcome, Result, Row
from faultline.faults.phases import not_applying, run_row
from faultline.faults.plan import USUAL, Planned
from faultline.faults.repair import generator_runs, heal, keep_settings, run, script
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.messages import say
from faultline.settings import PREFIX, ROOT
from faultline.stack.errors import StackError
from faultline.stack.preflight import available_mebibytes
from faultline.stack.services import mebibytes
from faultline.stack.stack import open_stack


def run_rows(rows: Iterable[Planned], folder: Path, *, may_reset: bool) -> None:
    """Run the rows; each writes its results to its own folder in `folder`.

    The stack is made clean after a row that leaves a wrong one, around a row with settings of its own, and between a
    row that has failed and the next one. On a stack that was there before, only if it `may_reset`.
    Raises StackError when that is not allowed, the output is wrong already, or a script fails; KeyboardInterrupt after
    the repair.
    """
    was_there = open_stack({}).home.marked()
    here = open_stack({}).settings.values if was_there else {}
    was_up = open_stack({}).is_up()
    generated = was_up and generator_runs()
    keep_settings()
    began = spoilt = failed = False
    own: object = USUAL
    usual = dict(os.environ)
    try:
        for planned in rows:
            row, wanted = planned.row, planned.own_beside(here)
            new = spoilt or failed or wanted != own or (not began and row.mode != EXACTLY_ONCE)
            if new and open_stack({}).home.marked():
                if was_there and not may_reset:
                    raise StackError(refusal("the row after one that has failed"))
                if not (spoilt or failed or own != USUAL):
                    _say_what_goes(row)
                script("reset.sh")
            failed, own = False, wanted
            _set(usual, (*row.settings, ("FLINK_MODE", row.mode)))
            if row.settings and (why := _no_room()) is not None:
                spoilt = False
                _show(not_applying(planned, folder / row.name, why))
                continue
            script("up.sh")
            if not began:
                _require_right()
            if row.spoils:
                _say_what_goes(row)
            began, spoilt, failed = True, row.spoils, True
            result = run_row(planned, folder / row.name, installs=new)
            failed = result.outcome is Outcome.FAILED
            _show(result)
    except KeyboardInterrupt:
        if began:
            say("repairing what is broken ...")
            heal()
            # It is not the row that is wrong.
            failed = False
        raise
    finally:
        _leave(spoilt=spoilt or own != USUAL, failed=failed, was_up=was_up, generated=generated, usual=usual)


def refusal(which: str) -> str:
    """Return why rows do not run on a stack that was there before: the rows would remove the data of that stack."""
    return (
        f"{which} needs a new stack, and the one in {open_stack({}).home.root} has topics, checkpoints and outputs; "
        "remove them with scripts/down.sh --wipe, or let this command do it with --reset"
    )


def _no_room() -> str | None:
    """Return why this machine is too small for the next stack; None when it is not, or when that stack is up."""
    stack = open_stack({})
    needed, available = mebibytes(stack.settings.values), available_mebibytes()
    if stack.is_up() or available is None or available >= needed:
        return None
    return f"its stack needs {needed} MiB of memory, and {available} MiB are available"


def _say_what_goes(row: Row) -> None:
    say(f"note: {row.name} wants a new stack: scripts/reset.sh removes topics, checkpoints and outputs")


def _set(usual: Mapping[str, str], own: Sequence[tuple[str, str]]) -> None:
    """Choose these settings, and otherwise what was chosen before the matrix."""
    os.environ.clear()
    os.environ.update({**usual, **{PREFIX + name: value for name, value in own}})


def _leave(*, spoilt: bool, failed: bool, was_up: bool, generated: bool, usual: Mapping[str, str]) -> None:
    """Leave the stack as it was found, or as it is after a row that failed: to look into it."""
    if failed:
        clean = f"{PREFIX}HOME={open_stack({}).home.root} scripts/reset.sh"
        say(f"the stack stays as it is, to look into it; {clean} starts clean")
        return
    if spoilt:
        script("reset.sh")
        _set(usual, ())
        if was_up:
            script("up.sh")
    elif not was_up:
        script("down.sh")
    if was_up and generated != generator_runs():
        script("generator_start.sh" if generated else "generator_stop.sh")


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
