"""The fault matrix: list its rows, run one, run all.

Usage: python -m faults list | run NAME [--mode MODE] | all [--mode MODE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence

from contract.settings import ROOT, SettingsError
from stack.errors import StackError
from stack.messages import say
from stack.stack import open_stack

from faults.matrix import ROWS
from faults.model import Outcome, Result, Row
from faults.phases import run_row
from faults.repair import heal, script

_MODES = ("exactly-once", "at-least-once")


def show_rows() -> None:
    """Print the rows of the matrix."""
    for row in ROWS.values():
        print(f"{row.name}\n    breaks:   {'; '.join(step.command for step in row.breaks)}")
        print(f"    promised: {row.promise}\n    since     {row.why}")
        if row.spoils:
            print("    ends in   scripts/reset.sh: topics, checkpoints and outputs are removed")
    print(f"\n{len(ROWS)} rows")


def run_rows(rows: Sequence[Row], mode: str) -> list[Result]:
    """Run rows one after the other on the stack; it is made clean again after a row that leaves duplicates."""
    results = []
    folder = open_stack({}).home.root / "results" / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    was_up = open_stack({}).is_up()
    spoilt = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for row in rows:
            if spoilt:
                script("reset.sh")
            script("up.sh")
            if row.spoils:
                say("note: the next row ends in scripts/reset.sh: topics, checkpoints and outputs are removed")
            result = run_row(row, folder / row.name, mode)
            spoilt = result.outcome is not Outcome.PASSED or row.spoils
            results.append(result)
            _show(result)
    except KeyboardInterrupt:
        say("repairing what is broken ...")
        heal()
        raise
    finally:
        if spoilt:
            script("reset.sh")
            if was_up:
                script("up.sh")
        elif not was_up:
            script("down.sh")
    (folder / "results.json").write_text(json.dumps([each.as_json() for each in results], indent=2) + "\n", "utf-8")
    return results


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


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="faults.sh", description="The fault matrix.", allow_abbrev=False)
    parser.add_argument("action", choices=("list", "run", "all"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--mode", choices=_MODES, default=_MODES[0])
    chosen = parser.parse_args(arguments)
    if chosen.action == "list":
        with contextlib.suppress(BrokenPipeError):
            show_rows()
            sys.stdout.flush()
            return 0
        # Its reader has closed the pipe; Python must not try to write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    unknown = [name for name in chosen.names if name not in ROWS]
    if unknown or (chosen.action == "run" and not chosen.names):
        say(f"faults.sh: which row? {', '.join(unknown)} is not one; the rows are: {', '.join(ROWS)}")
        return 2
    rows = [ROWS[name] for name in chosen.names] or list(ROWS.values())
    try:
        results = run_rows(rows, chosen.mode)
    except (StackError, SettingsError) as error:
        say(f"faults.sh: {error}")
        return 2
    except KeyboardInterrupt:
        say("faults.sh: interrupted; what was broken is repaired")
        return 130
    _table(results)
    return max(each.outcome.exit_code for each in results)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
