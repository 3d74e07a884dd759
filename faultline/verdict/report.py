"""The report: every category, its counts and meaning, the findings, and one verdict line per pipeline."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from faultline.formats.verdict import FAULTS, Outcome, Verdict, Verdicts
from faultline.verdict.escape import printable

_PLAIN_COLUMNS = 110
"""Width of the table in a pipe."""
_SLOW_SECONDS = 3.0
"""From this duration on the report shows what took the time."""

_MEANINGS = {
    "expected": "output records that follow from the source topic, recomputed",
    "observed": "output records, committed ones only",
    "lost": "expected, but not there",
    "duplicated": "there more often than expected",
    "unexpected": "there, but nothing in the source calls for it",
    "disordered": "there, but not in the order of its key",
    "pending": "not due yet: not committed, or in a window that is open",
    "late": "visits that came after their window had closed, set aside",
    "rejected": "records that cannot be parsed, set aside",
}
_STYLES = {Outcome.HOLDS: "bold green", Outcome.VIOLATED: "bold red", Outcome.UNKNOWN: "bold yellow"}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave the exit code to the outcome; Rich ends the process with 1."""
        raise BrokenPipeError


def print_report(found: Verdicts, *, verbose: bool = False, categories: Sequence[str] = tuple(_MEANINGS)) -> None:
    """Write the report of one or more judgements to stdout: coloured on a terminal, plain in a pipe.

    `categories`: the rows of its table.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An ASCII-only terminal or pipe gets escapes, not an error.
        sys.stdout.reconfigure(errors="backslashreplace")
    # `:fire:` in a record is text.
    console = _Console(file=sys.stdout, highlight=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console = _Console(file=sys.stdout, highlight=False, emoji=False, width=_PLAIN_COLUMNS)
    known = [verdict for verdict in found.verdicts if verdict.outcome is not Outcome.UNKNOWN or verdict.records]
    if known:
        console.print(_table(known, categories))
    for verdict in known:
        _print_details(console, verdict, verbose=verbose)
    for note in found.notes:
        console.print(escape(printable(note)), soft_wrap=True)
    for verdict in found.verdicts:
        style, word = _STYLES[verdict.outcome], verdict.outcome.value.upper()
        console.print(f"[{style}]{verdict.pipeline}: {word}[/]  {escape(printable(verdict.reason))}", soft_wrap=True)


def _table(verdicts: Sequence[Verdict], categories: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("category")
    for verdict in verdicts:
        table.add_column(verdict.pipeline, justify="right")
    table.add_column("meaning", style="dim")
    for category in categories:
        cells = []
        for verdict in verdicts:
            count = verdict.counts[category]
            bad = category in FAULTS and count
            cells.append(f"[bold red]{count:,}[/]" if bad else f"{count:,}")
        table.add_row(category, *cells, _MEANINGS[category])
    return table


def _print_details(console: Console, verdict: Verdict, *, verbose: bool) -> None:
    parts = [(name.replace("_", " "), count) for name, count in verdict.records.items()]
    sums = " + ".join(f"{count:,} {name}" for name, count in parts[1:])
    console.print(f"{verdict.pipeline}: {parts[0][1]:,} records in the source = {sums}", soft_wrap=True)
    for note in verdict.notes:
        console.print(f"  note: {escape(printable(note))}", soft_wrap=True)
    if verbose or sum(verdict.seconds.values()) >= _SLOW_SECONDS:
        times = ", ".join(f"{what} took {seconds:.1f} s" for what, seconds in verdict.seconds.items())
        console.print(f"  note: {times}", soft_wrap=True)
    for example in verdict.examples:
        if verbose or (verdict.outcome is Outcome.VIOLATED and example.category in FAULTS):
            console.print(f"  {example.category}: {escape(_one_line(example.text))}", soft_wrap=True)
    console.print()


def _one_line(text: str) -> str:
    """Keep a finding on one line; parts that come from records are escaped."""
    return text if text.isprintable() else printable(text)
