"""Walkthrough 15: run every case of the catalogue, count, and compare the page with the counts.

`--write` writes the page. `--spark RELEASE` measures another release, in the environment that
faultline/packages/release.py made for it.
"""

from __future__ import annotations

import difflib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

from pyspark.java_gateway import ensure_callback_server_started

from faultline.command import CommandError
from faultline.command import run as run_program
from faultline.packages.release import THIS_RELEASE, folder_of, python_of
from labs.delete_x_then_start import logs, output, rivals, state, topic
from labs.delete_x_then_start.case import ROWS, SPARK, Around, Case, Group, Measured, bench_for, measure
from labs.delete_x_then_start.document import PAGE, cell_text, page
from labs.delete_x_then_start.measured import FOLDER, Column, column_of, read_columns
from labs.frame.broker import running_broker
from labs.frame.pipeline import APPEND, FILE_SINK
from labs.frame.run import Lab, flags_of, run_chosen
from labs.frame.session import spark_session
from labs.frame.story import Fact, same

NAME = "15_delete_x_then_start"
CATALOGUE = [logs.GROUP, state.GROUP, state.ROCKSDB, output.GROUP, topic.GROUP, rivals.GROUP]
_AT_A_TIME = 2


def experiment(lab: Lab, *, write: bool) -> None:
    """Measure the catalogue, then prove its main results."""
    measured: list[Measured] = []
    with (
        running_broker(lab.folder / "kafka", lab.settings) as broker,
        spark_session(lab.settings, lab.folder / "spark", more=SPARK) as spark,
    ):
        # Started here, since the first two foreachBatch would both start it at the same time.
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        around = (spark, broker, lab.folder, lab.settings)
        for group in CATALOGUE:
            lab.story.step(group.title)
            measured += _measure_group(lab, group, around)
    _prove(lab, {(row.case.name, row.sink): row for row in measured})
    column = column_of(measured)
    if write:
        lab.story.say(f"{column.write()} written")
    _hold_page(lab, page(CATALOGUE, columns_with(column)), write=write)


def columns_with(measured: Column) -> list[Column]:
    """Return the columns on record; the one measured now replaces that of its release."""
    others = [each for each in read_columns(FOLDER) if each.release != measured.release]
    return sorted([*others, measured], key=lambda column: column.release)


def _measure_group(lab: Lab, group: Group, around: Around) -> list[Measured]:
    """Run two cases at a time, reported in order: each waits for the broker and for files more than it computes."""

    def one(run: tuple[Case, str]) -> Measured:
        return measure(*run, bench_for(*run, around))

    rows = []
    pool = ThreadPoolExecutor(_AT_A_TIME)
    try:
        for row in pool.map(one, [(case, sink) for case in group.cases for sink in case.sinks]):
            lab.story.say(f"{row.case.what}, {row.sink}")
            lab.story.say(f"  {cell_text(column_of([row]).cells[f'{row.case.name}, {row.sink}'])}")
            rows.append(row)
    finally:
        # After an error or a Ctrl-C the cases that have not begun do not begin.
        pool.shutdown(cancel_futures=True)
    return rows


def _prove(lab: Lab, rows: dict[tuple[str, str], Measured]) -> None:
    lab.story.step("What stands out")
    lab.story.prove(
        "Without its latest commit a batch runs again: append repeats exactly its rows, the file sink none.",
        *_counts(rows["latest-commit", APPEND], duplicated=ROWS),
        *_counts(rows["latest-commit", FILE_SINK]),
    )
    lab.story.prove(
        "Without its latest offset too, a batch is planned again under an old number, "
        "and the file sink, which knows the number, drops the new rows without a word.",
        *_counts(rows["latest-commit-and-offset", FILE_SINK], lost=ROWS),
    )
    lab.story.prove(
        "A topic that was created again and has grown past the old offsets loses rows without any error, "
        "whatever failOnDataLoss says.",
        *_counts(rows["again-longer-true", FILE_SINK], lost=40),
        *_counts(rows["again-longer-false", FILE_SINK], lost=40),
    )
    stops = [row for (name, _), row in rows.items() if name.startswith("state-") and name != "state-schema"]
    lab.story.prove(
        "Missing state is never replaced by empty state: Spark stops, and nothing is lost.",
        *[Fact(f"{row.case.what}: {row.outcome.failure}", row.outcome.failure is not None) for row in stops],
        *[fact for row in stops for fact in _counts(row)],
    )


def _counts(row: Measured, lost: int = 0, duplicated: int = 0) -> list[Fact]:
    what = f"{row.case.what}, {row.sink}"
    return [same(f"{what}: lost", row.lost, lost), same(f"{what}: duplicated", row.duplicated, duplicated)]


def _hold_page(lab: Lab, text: str, *, write: bool) -> None:
    name = "docs/" + PAGE.name
    if write:
        PAGE.write_text(text, encoding="utf-8")
        lab.story.say(f"{name} written")
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    changed = list(difflib.unified_diff(there.splitlines(), text.splitlines(), name, "measured", n=0, lineterm=""))
    lab.story.say("\n".join(changed))
    lab.story.prove(f"{name} is what was measured.", same("lines that differ", max(0, len(changed) - 2), 0))


def _with_release(release: str, arguments: list[str]) -> NoReturn:
    """Replace this process by one in the environment of another release, with its jars. Raises CommandError."""
    python = python_of("spark", release)
    if python.parent.parent != folder_of("spark", release) or not python.exists():
        raise CommandError(f"no environment of Spark {release}: python -m faultline.packages.release spark {release}")
    environ = os.environ | {"STACK_ARTIFACTS": str(folder_of("spark", release) / "artifacts")}
    os.execve(str(python), [str(python), "-m", "labs.delete_x_then_start", *arguments], environ)


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = flags_of(NAME)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--spark", default=THIS_RELEASE, metavar="RELEASE", help="measure another release of Spark")
    chosen = parser.parse_args(arguments)
    if chosen.spark != THIS_RELEASE:
        _with_release(chosen.spark, arguments)
    return run_chosen(NAME, lambda lab: experiment(lab, write=chosen.write), chosen)


if __name__ == "__main__":
    run_program(NAME, lambda: main(sys.argv[1:]))
