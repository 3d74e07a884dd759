"""Rows one after the other on one stack, which is made clean where a row needs it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from faultline.faults.model import Result, RowOutcome
from faultline.faults.phases import not_applying, run_row
from faultline.faults.plan import USUAL, Planned, turns
from faultline.faults.repair import generator_runs, heal, pinned, quietly
from faultline.formats import verdict
from faultline.messages import heard, say
from faultline.settings import PREFIX
from faultline.stack.errors import StackError
from faultline.stack.preflight import available_mebibytes
from faultline.stack.services import mebibytes
from faultline.stack.stack import Stack


def run_rows(rows: Iterable[Planned], folder: Path, stack: Stack, *, may_reset: bool) -> None:
    """Run the rows; each writes its results to its own folder in `folder`.

    The stack is made clean where a row needs a new one, and after a row that has failed. On a stack that was there
    before, only if it `may_reset`.
    Raises StackError when that is not allowed, the output is wrong already, or an act fails; KeyboardInterrupt after
    the repair.
    """
    before = _Before.of(stack)
    usual = pinned(stack)
    here, wrong, failed, began = usual, False, False, False
    try:
        for turn in turns(rows, usual.settings.values if before.was_there else {}):
            row, fresh = turn.planned.row, turn.fresh or failed
            if fresh and here.home.marked():
                if before.was_there and not may_reset:
                    raise StackError(refusal(stack, "the row after one that has failed"))
                if before.was_there:
                    say(f"note: {row.name} wants a new stack: topics, checkpoints and outputs are removed")
                quietly("reset", functools.partial(here.down, wipe=True))
            failed, wrong = False, turn.own != USUAL
            here = usual.having({**dict(row.settings), "FLINK_MODE": row.mode})
            if row.settings and (why := _too_small(here)) is not None:
                _show(not_applying(turn.planned, folder / row.name, why))
                continue
            quietly("up", here.up)
            if not began:
                _require_right(here)
            began, wrong, failed = True, wrong or row.spoils, True
            result = run_row(turn.planned, folder / row.name, here, installs=fresh)
            failed = result.outcome is RowOutcome.FAILED
            _show(result)
    except KeyboardInterrupt:
        if began:
            say("repairing what is broken ...")
            heal(here)
            # It is not the row that is wrong.
            failed = False
        raise
    finally:
        if failed:
            clean = f"{PREFIX}HOME={here.home.root} scripts/reset.sh"
            say(f"the stack stays as it is, to look into it; {clean} starts clean")
        else:
            before.restore(here, usual, wrong=wrong)


@dataclass(frozen=True)
class _Before:
    """The state of a stack before the rows: whether it has data, is up, and gets visits."""

    was_there: bool
    was_up: bool
    generated: bool

    @classmethod
    def of(cls, stack: Stack) -> _Before:
        was_up = stack.is_up()
        return cls(bool(stack.home.marked()), was_up, was_up and generator_runs(stack))

    def restore(self, here: Stack, usual: Stack, *, wrong: bool) -> None:
        """Leave the stack as it was; a `wrong` one, or one with settings of a row, is removed."""
        if wrong:
            quietly("reset", functools.partial(here.down, wipe=True))
            if self.was_up:
                quietly("up", usual.up)
        elif not self.was_up:
            quietly("down", here.down)
        if self.was_up and self.generated != generator_runs(usual):
            quietly(
                f"{'start' if self.generated else 'stop'} the generator",
                functools.partial(usual.start if self.generated else usual.stop, "generator"),
            )


def refusal(stack: Stack, which: str) -> str:
    """Return why rows do not run on a stack that was there before: the rows would remove the data of that stack."""
    return (
        f"{which} needs a new stack, and the one in {stack.home.root} has topics, checkpoints and outputs; "
        "remove them with scripts/down.sh --wipe, or let this command do it with --reset"
    )


def _too_small(stack: Stack) -> str | None:
    """Return why this machine is too small for a stack; None when it is not, or when that stack is up."""
    needed, available = mebibytes(stack.settings.values), available_mebibytes()
    if stack.is_up() or available is None or available >= needed:
        return None
    return f"its stack needs {needed} MiB of memory, and {available} MiB are available"


def _require_right(stack: Stack) -> None:
    """Raise StackError when the output is wrong already: what a row finds could have been there before."""
    with heard():
        found = stack.verdict(as_is=True)
    if found.outcome is verdict.Outcome.VIOLATED:
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
