"""Break the same query into one sink after the other, and render docs/which_sink.md. In the environment `pipeline`.

Usage: python -m faultline.pipelines.sinks [PIPELINE...]      without a name: only render

docs/which_sink.json has what was counted. A cell that is on record is not tried again: delete it first.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultline.command import CommandError, run
from faultline.files import replace_text
from faultline.formats.verdict import Outcome
from faultline.locks import locked_packages
from faultline.messages import say
from faultline.pipelines.prepare import find
from faultline.pipelines.rows import ROWS, Row, applies, try_row
from faultline.pipelines.spec import ENVIRONMENTS, Pipeline, SpecError, read
from faultline.settings import ROOT
from faultline.stack.own import own_environment
from faultline.stack.stack import Stack, open_stack
from faultline.stop import interrupt_once

PAGE = ROOT / "docs" / "which_sink.md"
RECORD = PAGE.with_suffix(".json")
TRIED = ("kill", "newest-commit-deleted", "older-checkpoint", "empty-checkpoint", "upgrade", "sink-away", "answer-lost")
"""The rows of the table."""

Cell = dict[str, Any]
"""The result of one row on one pipeline: pipeline, row, release, outcome, expected, lost, repeated, unexpected."""


@dataclass(frozen=True)
class Sink:
    """A line of the table. `line`: the code that makes the difference."""

    pipeline: str
    title: str
    line: str
    engine: str = "Spark"

    @property
    def name(self) -> str:
        """Its name in both tables."""
        return f"{self.engine}: {self.title}"


SINKS = (
    Sink("to_file_sink", "files, by the file sink", '`writeStream.format("json")`, read through `_spark_metadata`'),
    Sink("to_files_append", "files, appended in `foreachBatch`", '`batch.write.mode("append")`'),
    Sink("to_files_overwrite", "files, a folder a batch", '`batch.write.mode("overwrite").json(f"batch={batch_id}")`'),
    Sink("to_delta", "Delta Lake, by its own sink", '`writeStream.format("delta")`'),
    Sink("to_delta_append", "Delta Lake, appended in `foreachBatch`", '`batch.write.format("delta").mode("append")`'),
    Sink(
        "to_delta_transaction", "Delta Lake, with the batch's id",
        '`.option("txnAppId", query_id).option("txnVersion", batch_id)`',
    ),
    Sink(
        "to_iceberg", "Iceberg, by its own sink", '`writeStream.format("iceberg")`, with `fanout-enabled`', "Spark 4.1",
    ),
    Sink(
        "to_iceberg_append", "Iceberg, appended in `foreachBatch`", '`batch.writeTo("db.page_views").append()`',
        "Spark 4.1",
    ),
    Sink("to_kafka", "Kafka", '`writeStream.format("kafka")`: without transactions'),
    Sink("postgres_append", "Postgres, appended", '`batch.write.format("jdbc").mode("append")`'),
    Sink("to_postgres_upsert", "Postgres, by key", "`PRIMARY KEY (partition, position)` and `ON CONFLICT DO NOTHING`"),
    Sink(
        "to_postgres_batch_id", "Postgres, the batch's id in the same transaction",
        "`INSERT INTO batches ... ON CONFLICT DO NOTHING`",
    ),
    Sink("flink_kafka_exactly_once", "Kafka, in transactions", "`'sink.delivery-guarantee' = 'exactly-once'`", "Flink"),
    Sink("flink_kafka_at_least_once", "Kafka", "`'sink.delivery-guarantee' = 'at-least-once'`", "Flink"),
    Sink("flink_files", "files", "`'connector' = 'filesystem'`: complete with a checkpoint", "Flink"),
    Sink("flink_iceberg", "Iceberg", "`'connector' = 'iceberg'`: a snapshot with each checkpoint", "Flink"),
    Sink(
        "flink_iceberg_fixed_job", "Iceberg's newer sink, job id kept", "`'table.exec.iceberg.use-v2-sink' = 'true'`",
        "Flink",
    ),
    Sink("flink_postgres_append", "Postgres, appended", "`'connector' = 'jdbc'`, a table without a key", "Flink"),
    Sink("flink_postgres_upsert", "Postgres, by key", "`PRIMARY KEY (part, pos) NOT ENFORCED`", "Flink"),
)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """A public report, and the cell that tries it. `counted`: lost or repeated, which the report speaks of."""

    link: str
    says: str
    pipeline: str
    row: str
    counted: str


REPORTS = (
    Report(
        "https://github.com/apache/iceberg/issues/18098",
        "Iceberg's newer sink drops commits after a start without state",
        "flink_iceberg_fixed_job", "empty-checkpoint", "lost",
    ),
    Report(
        "https://github.com/apache/iceberg/issues/10892",
        "a restore from an older point skips the commits of checkpoints whose numbers the table has already",
        "flink_iceberg", "older-checkpoint", "lost",
    ),
    Report(
        "https://github.com/apache/iceberg/issues/8809",
        "a batch that `foreachBatch` runs again is in the Iceberg table twice",
        "to_iceberg_append", "newest-commit-deleted", "repeated",
    ),
    Report(
        "https://github.com/delta-io/delta/pull/1141",
        "a batch that `foreachBatch` runs again is in the Delta table twice, without `txnAppId` and `txnVersion`",
        "to_delta_append", "newest-commit-deleted", "repeated",
    ),
    Report(
        "https://github.com/apache/spark/pull/22331",
        "the file sink writes a batch twice when the driver dies (SPARK-25331)",
        "to_file_sink", "kill", "repeated",
    ),
)  # fmt: skip

_HEAD = """# Which sink

One query reads visits from Kafka and writes them into a sink: which rows are lost, and which are there twice, when it
is broken? Rendered by `python -m faultline.pipelines.sinks` from `which_sink.json`, which has the counts of each run;
`scripts/pipeline.sh faults PIPELINE ROW` tries one again. {releases}, backend local, 2 cores.

{table}
| sink | pipeline | the line that decides |
|---|---|---|
{lines}
A cell has the rows that were lost and repeated; "none" stands for neither. A dash: the row does not apply, as Spark's
newest commit to a job of Flink. An empty cell was not tried. How many rows a batch or a checkpoint has, and so how
many are repeated, depends on the moment. No runtime of Iceberg was found for Spark 4.2 and Flink 2.2: its pipelines of
Spark run on 4.1, and those of Flink on 2.2 with the runtime for 2.1.

- **kill**: SIGKILL in mid-flight, twice. Spark runs the batch again that was being written, with the same offsets;
  Flink reads again from its newest checkpoint. A sink that cannot tell has its rows twice.
- **newest commit deleted**: Spark's last batch runs again, though it was complete: the same case, without luck.
- **older checkpoint**: what was processed since the copy is read again. Spark's batches then have ids that the sink may
  know: it skips such a batch, and loses its rows where they are not those of the first time. Flink's sinks have
  committed these rows, and write them again.
- **empty checkpoint**: everything is read again, and ids of batches begin again at 0. The file sink has these ids in
  its log, and loses new rows under them; so does a table of batches in Postgres, and Iceberg's newer sink in a job that
  keeps its id: the new checkpoints have numbers that the table has. Delta Lake and Iceberg know a query of Spark by its
  id, which is a new one, and write all again. A key that the rows themselves have, as in the upserts, does not depend
  on a checkpoint, nor does a folder for each batch where the batches are the same.
- **upgrade**: stopped as soon as the output has grown, and started again: on {upgrade}, or, in Flink, with three tasks
  in place of two.
- **sink away**: the connection to the database is cut for 30 s. The program ends with an error, and is started again.
- **answer lost**: the database has committed, and the connection breaks before it can say so. The program cannot
  know, and does it again.

## Public reports

| report | what it says | tried here |
|---|---|---|
{reports}
What each column does to a pipeline stands in [a pipeline of your own](pipelines.md#the-rows).
"""


def tried(stack: Stack, pipeline: Pipeline, row: Row) -> Cell:
    """Break the pipeline, and count."""
    verdict = try_row(stack, pipeline, row)
    return {
        "pipeline": pipeline.name, "row": row.name,
        "release": _release(pipeline.start.environment if pipeline.start else ""),
        "promise": pipeline.promise, "outcome": verdict.outcome.value, "expected": verdict.expected,
        "lost": verdict.lost, "repeated": verdict.duplicated, "unexpected": verdict.unexpected,
    }  # fmt: skip


def _release(name: str) -> str:
    """Return the engine of an environment and its release, e.g. `Spark 4.2.0`."""
    if name == "flink":
        return f"Flink {locked_packages(name)['apache-flink']}"
    return f"Spark {locked_packages(ENVIRONMENTS.get(name, name))['pyspark']}"


def page(stack: Stack, cells: list[Cell]) -> str:
    """Render the page."""
    pipelines = {sink.pipeline: read(find(sink.pipeline)) for sink in SINKS}
    found = {(cell["pipeline"], cell["row"]): cell for cell in cells}
    rows = [row for name in TRIED for row in ROWS if row.name == name]
    table = [["sink", *(row.name.replace("-", " ") for row in rows)], ["---"] * (1 + len(rows))]

    def shown(name: str, row: Row) -> str:
        return "—" if applies(row, pipelines[name], stack) else _counts(found.get((name, row.name)))

    table += [[sink.name, *(shown(sink.pipeline, row) for row in rows)] for sink in SINKS]
    upgrades = [each.upgrade for each in pipelines.values()]
    releases = {_release(each.environment) for each in upgrades if each and each.environment}
    return _HEAD.format(
        releases=", ".join(sorted({cell["release"] for cell in cells})), upgrade=", ".join(sorted(releases)),
        table=_lines(table), lines=_lines([sink.name, f"`{sink.pipeline}`", sink.line] for sink in SINKS),
        reports=_lines(_of_report(each, found.get((each.pipeline, each.row))) for each in REPORTS),
    )  # fmt: skip


def _of_report(report: Report, cell: Cell | None) -> list[str]:
    """Render a report and whether its cell shows it."""
    place = next(sink.name for sink in SINKS if sink.pipeline == report.pipeline)
    where = f"{place}, {report.row.replace('-', ' ')}"
    *_, project, _, number = report.link.split("/")
    called = f"[{project} {number}]({report.link})"
    if cell is None:
        return [called, report.says, f"not tried: {where}"]
    does = "reproduces" if cell[report.counted] else f"did not reproduce on {cell['release']}"
    return [called, report.says, f"{does} ({where}): {_counts(cell)}"]


def _lines(table: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in table)


def _counts(cell: Cell | None) -> str:
    """Render a cell; empty when it was not tried."""
    if cell is None:
        return ""
    words = {"lost": "lost", "repeated": "repeated", "unexpected": "torn"}
    found = [f"**{cell[key]:,}** {word}" for key, word in words.items() if cell[key]]
    return f"{', '.join(found) or 'none'} of {cell['expected']:,}"


def try_sinks(stack: Stack, names: Sequence[str]) -> None:
    """Try what is not on record of these pipelines, and put it on record."""
    rows = [row for row in ROWS if row.name in TRIED]
    for pipeline, row in itertools.product([read(find(name)) for name in names], rows):
        known = {(cell["pipeline"], cell["row"]) for cell in recorded()}
        if (pipeline.name, row.name) in known or applies(row, pipeline, stack):
            continue
        say(f"{pipeline.name}: {row.title}")
        try:
            cell = tried(stack, pipeline, row)
        except CommandError as error:
            say(str(error))
            continue
        if cell["outcome"] == Outcome.UNKNOWN.value:
            say(f"{pipeline.name}, {row.name}: unknown; run this again")
            continue
        # Another process may have tried other pipelines in the meantime.
        cells = sorted([*recorded(), cell], key=lambda each: (each["pipeline"], each["row"]))
        replace_text(RECORD, json.dumps(cells, indent=1) + "\n")


@contextlib.contextmanager
def own_stack() -> Iterator[Stack]:
    """Open a stack with a folder of its own; nothing is started."""
    with tempfile.TemporaryDirectory() as home:
        yield open_stack({}, own_environment(Path(home), {"BACKEND": "local"}))


def recorded() -> list[Cell]:
    """Return the cells on record."""
    found: list[Cell] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else []
    return found


def main() -> int:
    """Try what is named, and write record and page; returns the exit code."""
    interrupt_once()
    known = {sink.pipeline for sink in SINKS}
    if unknown := sorted(set(sys.argv[1:]) - known):
        raise SpecError(f"{unknown[0]} is not in the table; it has {', '.join(sorted(known))}")
    with own_stack() as stack:
        try_sinks(stack, sys.argv[1:])
        replace_text(PAGE, page(stack, recorded()))
    return 0


if __name__ == "__main__":
    run("sinks", main)
