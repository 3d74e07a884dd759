"""The fault matrix: list its rows, run some, run all.

Usage: python -m faultline.faults list | run NAME... | all [--seed N] [--mode MODE] [--stacks N] [--reset]
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.faults.lanes import MOST_STACKS, run_side_by_side, that_fit
from faultline.faults.listing import show_rows
from faultline.faults.matrix import refusal, run_rows
from faultline.faults.model import Result, RowOutcome
from faultline.faults.plan import known, plan
from faultline.faults.rows import CONTROL_ROWS, ROWS
from faultline.formats.jobs import EXACTLY_ONCE, MODES
from faultline.messages import say
from faultline.settings import ROOT
from faultline.stack.errors import StackError
from faultline.stack.stack import open_stack
from faultline.stop import interrupt_once


def run_names(names: Sequence[str], seed: int, mode: str, stacks: int | None, *, may_reset: bool) -> list[Result]:
    """Run rows and controls, and write results.json; returns the results in the order of the rows.

    `stacks`: the number that share the rows; None: one for rows that are named, and for all rows as many as fit.

    Raises StackError when a row could not run, or a stack is there and may not be reset for one; KeyboardInterrupt
    after the repair.
    """
    stack = open_stack()
    folder = stack.home.root / "results" / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    rows = plan(names, seed, mode)
    resets = [each.row.name for each in rows if each.resets(stack.settings.values)]
    if resets and stack.home.marked() and not may_reset:
        raise StackError(refusal(stack, resets[0] if len(resets) == 1 else f"each of {', '.join(resets)}"))
    stacks = stacks or (1 if names else that_fit(stack, rows))
    if stacks > 1:
        say(f"{stacks} stacks share the rows; --stacks 1 takes one")
    try:
        if stacks == 1:
            run_rows(rows, folder, stack, may_reset=may_reset)
        else:
            run_side_by_side(stack, names, folder, seed=seed, mode=mode, stacks=stacks, may_reset=may_reset)
    finally:
        ended = (Result.read(folder / planned.row.name) for planned in rows)
        results = [each for each in ended if each is not None]
        if results:
            text = json.dumps([each.as_json() for each in results], indent=2) + "\n"
            (folder / "results.json").write_text(text, encoding="utf-8")
            _table(results, folder)
    return results


def _table(results: Sequence[Result], folder: Path) -> None:
    width = max(len(each.row) for each in results)
    for each in results:
        print(f"{each.row:<{width}}  {each.outcome.value}")
    passed = sum(each.outcome is RowOutcome.PASSED for each in results)
    apply = sum(each.outcome is not RowOutcome.DOES_NOT_APPLY for each in results)
    say(f"results: {folder}")
    print(f"\n{passed} of {apply} rows passed; {len(results) - apply} do not apply here")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/faults.sh", description="The fault matrix.", allow_abbrev=False)
    parser.add_argument("action", choices=("list", "run", "all"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seed", type=int, help="chooses the moment of each fault (default: a random one, printed)")
    parser.add_argument("--mode", choices=MODES, default=EXACTLY_ONCE, help="of the job (default: %(default)s)")
    parser.add_argument("--stacks", type=int, metavar="N", help="stacks side by side (default: 1; all: what fits here)")
    parser.add_argument("--reset", action="store_true", help="remove what the running stack has, if a row needs it")
    chosen = parser.parse_args(arguments)
    if chosen.stacks is not None and not 1 <= chosen.stacks <= MOST_STACKS:
        parser.error(f"--stacks {chosen.stacks}: from 1 to {MOST_STACKS}")
    if chosen.names and chosen.action != "run":
        parser.error(f"{chosen.action} takes no names; run NAME runs one")
    if chosen.action == "list":
        show_rows()
        return 0
    unknown = [name for name in chosen.names if not known(name)]
    if unknown or (chosen.action == "run" and not chosen.names):
        which = f"{', '.join(unknown)} is not a row" if unknown else "which row?"
        say(f"faults.sh: {which}; the rows are: {', '.join((*ROWS, *CONTROL_ROWS))}")
        return 2
    interrupt_once()
    try:
        seed = secrets.randbelow(10**6) if chosen.seed is None else chosen.seed
        print(f"seed {seed}", flush=True)
        results = run_names(chosen.names, seed, chosen.mode, chosen.stacks, may_reset=chosen.reset)
    except CommandError as error:
        say(f"faults.sh: {error}")
        return 2
    except KeyboardInterrupt:
        say("faults.sh: interrupted; what was broken is repaired")
        return 130
    codes = {each.outcome.exit_code for each in results}
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    os.chdir(ROOT)
    run("faults.sh", lambda: main(sys.argv[1:]))
