"""The measured tables as a page: docs/spark_checkpoint_surgery.md. The same measurement gives the same page."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from faultline.settings import ROOT
from labs.delete_x_then_start.case import BATCHES, ROWS, Case, Group
from labs.delete_x_then_start.measured import Cell, Column

PAGE = ROOT / "docs" / "spark_checkpoint_surgery.md"

_HEAD = f"""# Delete X, then start

What Spark does when part of a checkpoint, of an output or of a topic is gone, a column for each release. Every cell was
measured by running it: `scripts/walkthroughs/15_delete_x_then_start.sh --write` measures the release of the stack and
writes this page, with `--spark 4.3` another one, and a test fails when the column of the stack's release no longer
matches. Only the last column is written by hand, beside each case in `labs/delete_x_then_start/`.

Each case begins the same: {BATCHES * ROWS} rows in {BATCHES} batches of {ROWS}, 0 to {BATCHES - 1}, all committed, all
in the output. The query is stopped, the damage done, {ROWS} more rows come in unless it says otherwise, and the query
is started again, now without a limit to a batch.

- **lost**: rows of the source that are not in the output, and that this query will not read any more.
- **waiting**: where Spark stops: rows that are not in the output, were never read, and are still in the source.
- **rows** of a batch are those that Spark says it read. A batch that a sink skips reads none.
- **duplicated**: rows in the output once more than they were sent, counted row by row.

A count that is not in a cell is 0. A cell that says `as` and a release: the same as in the column of that release.

Where Spark cannot read an output folder any more, the lines of its files were counted.

`foreachBatch append` writes each batch with `mode("append")`; the `file sink` is `format("text")`, whose log
`_spark_metadata` remembers the batches that it has. The files of a checkpoint are written through Spark's default on a
local disk; the project's synchronizer chooses another one, for speed, which
reads and names the same files.
"""


def page(catalogue: list[Group], columns: list[Column]) -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _HEAD,
            _measured_with(columns),
            _changes(catalogue, columns),
            *(_section(group, columns) for group in catalogue),
        ]
    )


def _measured_with(columns: list[Column]) -> str:
    lines = ["| release | measured with | Kafka source |", "| --- | --- | --- |"]
    lines += [_line([each.release, f"Spark {each.spark}", each.kafka]) for each in columns]
    return "\n".join([*lines, ""])


def _runs(group: Group) -> list[tuple[Case, str]]:
    return [(case, sink) for case in group.cases for sink in case.sinks]


def _changes(catalogue: list[Group], columns: list[Column]) -> str:
    """List what each release does differently from the one before it: other batches, counts, or a stop."""
    lines = ["## What changed between the releases", ""]
    for before, after in pairwise(columns):
        others, errors = [], 0
        for case, sink in [run for group in catalogue for run in _runs(group)]:
            old, new = before.cell(case.name, sink), after.cell(case.name, sink)
            if old is None or new is None or old == new:
                continue
            if old.gist == new.gist:
                errors += 1
                continue
            others.append(f"  - {case.what}, {sink}: {cell_text(old)} -> {cell_text(new)}")
        lines.append(f"- {before.release} to {after.release}: {'' if others else 'nothing is done otherwise'}".rstrip())
        if errors:
            lines[-1] += f"{';' if not others else ''} {errors} rows stop with another error or another text of it"
        lines += others
    return "\n".join([*lines, ""])


def _section(group: Group, columns: list[Column]) -> str:
    heads = ["what was deleted or done", "sink", *(f"Spark {each.release}" for each in columns), "in production"]
    lines = [f"## {group.title}", "", *([group.words, ""] if group.words else [])]
    lines += [_line(heads), _line("---" for _ in heads)]
    before = None
    for case, sink in _runs(group):
        first = case is not before
        before = case
        cells = [case.what if first else "the same", sink, *_cells(case, sink, columns)]
        lines.append(_line([*cells, case.production if first else "the same"]))
    return "\n".join([*lines, ""])


def _cells(case: Case, sink: str, columns: list[Column]) -> list[str]:
    """Return the cell of each release; one that is like an earlier one names the earliest."""
    found: dict[str, str] = {}
    cells = []
    for column in columns:
        cell = column.cell(case.name, sink)
        text = "not measured" if cell is None else cell_text(cell)
        cells.append(f"as {found[text]}" if text in found else text)
        found.setdefault(text, column.release)
    return cells


def cell_text(cell: Cell) -> str:
    """Return what Spark did, and the counts that are not 0."""
    counts = [("lost", cell.lost), ("waiting", cell.waiting), ("duplicated", cell.duplicated)]
    said = [f"{name} {number}" if name == "waiting" else f"**{name} {number}**" for name, number in counts if number]
    return "; ".join([cell.does.replace("|", r"\|"), *said])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
