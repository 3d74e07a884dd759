"""The fault matrix: list its rows, run one, run all.

Usage: python -m faults list | run NAME... | all [--seed N] [--mode MODE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import secrets
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from contract.settings import PREFIX, ROOT, SettingsError
from stack.backend import RUNNING
from stack.errors import StackError
from stack.messages import say
from stack.stack import open_stack

from faults.model import EXACTLY_ONCE, MODES, Outcome, Result, Row
from faults.phases import run_row
from faults.repair import heal, keep_settings, run, script
from faults.rows import CONTROL_ROWS, ROWS

_NO_OWN: tuple[object, ...] = ((), "")
"""A row that needs no stack of its own."""


def show_rows() -> None:
    """Print the rows of the matrix."""
    for row in ROWS.values():
        print(f"{row.name}\n    breaks:   {'; '.join(step.command for step in row.breaks)}")
        print(f"    promised: {row.promise}\n    since     {row.why}")
        for need in row.needs:
            print(f"    needs     {need.value}: root, Linux, backend local")
        if row.settings:
            print(f"    with      {', '.join(f'{name}={value}' for name, value in row.settings)}, on a new stack")
        elif row.spoils:
            print("    ends in   scripts/reset.sh: topics, checkpoints and outputs are removed")
    for name, rows in CONTROL_ROWS.items():
        print(f"{name}\n    control:  {rows[0].why}\n    promised: {rows[0].promise}, under each of: ", end="")
        print(", ".join(row.fault for row in rows))
    print(f"\n{len(ROWS)} rows, {len(CONTROL_ROWS)} negative controls of three rows each")


def run_rows(rows: Sequence[Row], seed: int) -> list[Result]:
    """Run rows one after the other; the seed chooses the moment of each fault.

    The stack is made clean after a row that leaves a wrong one, around a row with settings of its own, and between a
    row that has failed and the next one.
    Raises StackError when the output is wrong already, or a script fails; KeyboardInterrupt after the repair.
    """
    results: list[Result] = []
    folder = open_stack({}).home.root / "results" / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    was_up = open_stack({}).is_up()
    generated = was_up and _generator_runs()
    keep_settings()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chance = random.Random(seed)
    spoilt = failed = False
    own: tuple[object, ...] = _NO_OWN
    usual = dict(os.environ)
    try:
        for row in rows:
            moment = chance.random()
            new = spoilt or failed or (row.settings, row.control) != own
            if new and open_stack({}).home.marked():
                if not (spoilt or failed or own != _NO_OWN):
                    _say_what_goes(row)
                script("reset.sh")
            own = (row.settings, row.control)
            _set(usual, row.settings)
            script("up.sh")
            if not results:
                _require_right()
            if row.spoils:
                _say_what_goes(row)
            spoilt = row.spoils
            result = run_row(row, folder / row.name, moment, installs=new)
            failed = result.outcome is Outcome.FAILED
            results.append(result)
            _write(folder, results)
            _show(result)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("repairing what is broken ...")
        heal()
        raise
    finally:
        _leave(spoilt=spoilt or own != _NO_OWN, failed=failed, was_up=was_up, generated=generated, usual=usual)
    return results


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
    if was_up and generated and not _generator_runs():
        script("generator_start.sh")


def _generator_runs() -> bool:
    stack = open_stack({})
    return stack.backend.state(stack.service("generator")) == RUNNING


def _require_right() -> None:
    """Raise StackError when the output is wrong already: what a row finds could have been there before."""
    done = run([str(ROOT / "scripts" / "verdict.sh"), "all", "--as-is"], os.environ, 600)
    if done.returncode == 1:
        raise StackError(
            "the output of this stack is already wrong (scripts/verdict.sh all); scripts/reset.sh starts clean"
        )


def _write(folder: Path, results: Sequence[Result]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps([each.as_json() for each in results], indent=2) + "\n"
    (folder / "results.json").write_text(text, encoding="utf-8")


def _show(result: Result) -> None:
    for check in result.checks:
        head, rest = ("ok      ", "") if check.ok else ("FAILED  ", f", expected {check.expected}")
        say(f"   {head}{check.what}: {check.seen}{rest}")
    for name, seconds in result.times.items():
        say(f"           {name}: {seconds} s")
    if result.reason:
        say(f"   {result.reason}")
    say(f"-> {result.outcome.value}; {result.folder}/report.html")


def _table(results: Sequence[Result]) -> None:
    width = max(len(each.row) for each in results)
    for each in results:
        print(f"{each.row:<{width}}  {each.outcome.value}")
    passed = sum(each.outcome is Outcome.PASSED for each in results)
    apply = sum(each.outcome is not Outcome.DOES_NOT_APPLY for each in results)
    print(f"\n{passed} of {apply} rows passed; {len(results) - apply} do not apply here")


def _rows_of(name: str) -> tuple[Row, ...]:
    return CONTROL_ROWS.get(name) or (ROWS[name],)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="faults.sh", description="The fault matrix.", allow_abbrev=False)
    parser.add_argument("action", choices=("list", "run", "all"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seed", type=int, help="chooses the moment of each fault (default: a random one, printed)")
    parser.add_argument("--mode", choices=MODES, default=EXACTLY_ONCE, help="of the job (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.names and chosen.action != "run":
        parser.error(f"{chosen.action} takes no names; run NAME runs one")
    if chosen.action == "list":
        with contextlib.suppress(BrokenPipeError):
            show_rows()
            sys.stdout.flush()
            return 0
        # Its reader has closed the pipe; Python must not try to write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    unknown = [name for name in chosen.names if name not in ROWS and name not in CONTROL_ROWS]
    if unknown or (chosen.action == "run" and not chosen.names):
        which = f"{', '.join(unknown)} is not a row" if unknown else "which row?"
        say(f"faults.sh: {which}; the rows are: {', '.join((*ROWS, *CONTROL_ROWS))}")
        return 2
    rows = [row for name in dict.fromkeys(chosen.names or (*ROWS, *CONTROL_ROWS)) for row in _rows_of(name)]
    if chosen.mode != EXACTLY_ONCE:
        rows = [replace(row, mode=chosen.mode, settings=(*row.settings, ("FLINK_MODE", chosen.mode))) for row in rows]
    try:
        seed = secrets.randbelow(10**6) if chosen.seed is None else chosen.seed
        print(f"seed {seed}", flush=True)
        results = run_rows(rows, seed)
    except (StackError, SettingsError) as error:
        say(f"faults.sh: {error}")
        return 2
    except KeyboardInterrupt:
        say("faults.sh: interrupted; what was broken is repaired")
        return 130
    _table(results)
    codes = {each.outcome.exit_code for each in results}
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
