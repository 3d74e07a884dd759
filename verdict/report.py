"""The table for people: every category, its counts, what it means, examples, and one verdict line a pipeline."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from verdict.model import Outcome, Verdict

_PLAIN_COLUMNS = 110
"""Width of the table in a pipe."""

_MEANINGS = {
    "expected": "output records that follow from the source topic, computed anew",
    "observed": "output records that are there, committed ones only",
    "lost": "expected, but not there",
    "duplicated": "there more often than expected",
    "unexpected": "there, but nothing in the source calls for it",
    "pending": "not due yet: batch not committed, or window still open",
    "late": "visits that came after their window had closed, set aside",
    "rejected": "records that are no visit, set aside",
}
_FAULTS = ("lost", "duplicated", "unexpected")
_STYLES = {Outcome.HOLDS: "bold green", Outcome.VIOLATED: "bold red", Outcome.UNKNOWN: "bold yellow"}


def print_report(verdicts: Sequence[Verdict]) -> None:
    """Write the report of one or more judgements to stdout: coloured on a terminal, plain in a pipe."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(file=sys.stdout, highlight=False, width=_PLAIN_COLUMNS)
    known = [verdict for verdict in verdicts if verdict.outcome is not Outcome.UNKNOWN or verdict.records]
    if known:
        console.print(_table(known))
    for verdict in known:
        _print_details(console, verdict)
    for verdict in verdicts:
        style = _STYLES[verdict.outcome]
        console.print(
            f"[{style}]{verdict.pipeline}: {verdict.outcome.value.upper()}[/]  {escape(verdict.reason)}", soft_wrap=True
        )


def _table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("category")
    for verdict in verdicts:
        table.add_column(verdict.pipeline, justify="right")
    table.add_column("meaning", style="dim")
    for category, meaning in _MEANINGS.items():
        cells = []
        for verdict in verdicts:
            count = getattr(verdict, category)
            bad = category in _FAULTS and count
            cells.append(f"[bold red]{count:,}[/]" if bad else f"{count:,}")
        table.add_row(category, *cells, meaning)
    return table


def _print_details(console: Console, verdict: Verdict) -> None:
    parts = [(name.replace("_", " "), count) for name, count in verdict.records.items()]
    sums = " + ".join(f"{count:,} {name}" for name, count in parts[1:])
    console.print(f"{verdict.pipeline}: {parts[0][1]:,} records in the source = {sums}", soft_wrap=True)
    for note in verdict.notes:
        console.print(f"  note: {escape(note)}", soft_wrap=True)
    for example in verdict.examples:
        console.print(f"  {example.category}: {escape(example.text)}", soft_wrap=True)
    console.print()
