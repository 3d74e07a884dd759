"""The measured table as a page: docs/spark_checkpoint_surgery.md. The same measurement gives the same page."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.version import __version__ as spark_version

from contract.settings import ROOT
from labs.surgery.case import BATCHES, ROWS, Group, Measured

PAGE = ROOT / "docs" / "spark_checkpoint_surgery.md"

_HEAD = f"""# Delete X, then start

What Spark {spark_version} does when part of a checkpoint, of an output or of a topic is gone. Every row was measured
by running it; `scripts/walkthroughs/05_delete_x_then_start.sh --write` writes this page, and a test fails when it no
longer matches. Only the last column is written by hand, beside each case in `labs/surgery/`.

Each case begins the same: {BATCHES * ROWS} rows in {BATCHES} batches of {ROWS}, 0 to {BATCHES - 1}, all committed, all
in the output. The query is stopped, the damage done, {ROWS} more rows come in unless it says otherwise, and the query
is started again, now without a limit to a batch.

- **lost**: rows of the source that are not in the output, and that this query will not read any more.
- **waiting**: where Spark stops: rows that are not in the output, were never read, and are still in the source.
- **rows** of a batch are those that Spark says it read. A batch that a sink skips reads none.
- **duplicated**: rows in the output once more than they were sent, counted row by row.

Where Spark cannot read an output folder any more, the lines of its files were counted.

`foreachBatch append` writes each batch with `mode("append")`; the `file sink` is `format("text")`, whose log
`_spark_metadata` remembers the batches that it has. The files of a checkpoint are written through Spark's default on a
local disk (`FileContextBasedCheckpointFileManager`); the project's synchronizer chooses another one, for speed, which
reads and names the same files.
"""

_COLUMNS = ("what was deleted or done", "sink", "what Spark does", "lost", "waiting", "duplicated", "in production")


def page(measured: list[tuple[Group, list[Measured]]]) -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(_section(group, rows) for group, rows in measured)])


def _section(group: Group, rows: list[Measured]) -> str:
    lines = [f"## {group.title}", "", *([group.words, ""] if group.words else [])]
    lines += [_line(_COLUMNS), _line("---" for _ in _COLUMNS)]
    before = None
    for row in rows:
        first = row.case is not before
        before = row.case
        cells = [row.case.what if first else "the same", row.sink, what_spark_does(row), *counts(row)]
        lines.append(_line([*cells, row.case.production if first else "the same"]))
    return "\n".join([*lines, ""])


def counts(row: Measured) -> list[str]:
    """Return the counts as cells; what is not 0 in bold, but for rows that only wait."""
    return [
        f"**{row.lost}**" if row.lost else "0",
        str(row.waiting),
        f"**{row.duplicated}**" if row.duplicated else "0",
    ]


def what_spark_does(row: Measured) -> str:
    """Return the batches that ran with their rows, and where it stopped; all as Spark reported it."""
    words = str(row.outcome)
    if row.reader:
        words += f". Spark cannot read the output: {row.reader}"
    return words.replace("|", r"\|")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
