"""Walkthrough 13: a batch runs again after its commit was lost.

Run by scripts/walkthroughs/13_failure_before_the_commit.sh
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from labs.frame import events
from labs.frame.count import compare
from labs.frame.devices_run import rows_in, run_devices
from labs.frame.events import Row, rows_of
from labs.frame.inspect import inspect
from labs.frame.progress import Batch
from labs.frame.run import Lab, run
from labs.frame.session import console, spark_session
from labs.frame.story import Fact, same
from spark_job.checkpoint import Checkpoint
from spark_job.devices_file_stream import CONSOLE, DELTA, DeviceOptions, devices
from spark_job.options import FILES, FOREACH_APPEND, FOREACH_OVERWRITE

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NAME = "13_failure_before_the_commit"
_FILES = 4
_LAST = _FILES - 1
# Each real sink, what it is, and why it repeats the batch or not; whether its second run adds data files,
# and whether it removes some.
_SINKS = {
    FOREACH_APPEND: ("plain append in foreachBatch", "it cannot know that it wrote the batch before", (True, False)),
    FOREACH_OVERWRITE: ("a folder for each batch id", "the batch overwrites its own folder", (True, True)),
    FILES: ("the file sink", "its log, _spark_metadata, already has the batch, so it writes nothing", (False, False)),
    DELTA: (
        "Delta with txnAppId and txnVersion",
        "the table's log already has that version of that id, so it writes nothing",
        (False, False),
    ),
}
# Where the log of an idempotent sink records the batch.
_LOG = {FILES: f"_spark_metadata/{_LAST}", DELTA: f"_delta_log/{_LAST:020d}.json"}


class Experiment:
    """The lab, its session, and the rows of each input file."""

    def __init__(self, lab: Lab, spark: SparkSession) -> None:
        self.lab, self.spark, self.story = lab, spark, lab.story
        self.files = [
            # Each file has a different number of events: a batch is identified by its count.
            events.write(lab.folder / "input" / f"devices-{n}.json", rows_of(10 * n, 2 + n), n)
            for n in range(_FILES)
        ]

    def options(self, sink: str) -> DeviceOptions:
        """Return the run with this sink; checkpoint and output are named after it."""
        output = None if sink == CONSOLE else self.lab.folder / f"output_{sink}"
        return DeviceOptions(self.lab.folder / "input", self.lab.folder / f"checkpoint_{sink}", output, sink)

    def delete_commit(self, checkpoint: Path) -> tuple[dict[str, int], bytes]:
        """Delete the latest commit; returns the planned offset of its batch, and the whole file."""
        self.story.say(f"deleting {checkpoint.name}/commits/{_LAST}; offsets/{_LAST} stays, as after a crash")
        self.lab.folder.delete_logged(checkpoint / "commits" / str(_LAST))
        planned = (checkpoint / "offsets" / str(_LAST)).read_bytes()
        return json.loads(planned.splitlines()[-1]), planned


def reran(ran: list[Batch], offset: dict[str, int], planned: bytes, checkpoint: Path) -> tuple[Fact, ...]:
    """By Spark's progress and the files: only this batch ran again, with the same range."""
    seen = (checkpoint / "offsets" / str(_LAST)).read_bytes()
    return (
        same("batches that ran", [batch.id for batch in ran], [_LAST]),
        same("end offset by Spark's progress", [batch.end for batch in ran], [[offset]]),
        Fact(f"offsets/{_LAST} is unchanged, byte for byte", seen == planned),
        same("newest commit", Checkpoint(checkpoint).committed(), _LAST),
    )


def data_files(output: Path) -> set[str]:
    """Names of the data files; Spark gives each file that it writes a unique name."""
    return {str(path.relative_to(output)) for path in output.rglob("part-*")}


def on_the_console(do: Experiment) -> None:
    """As in class: the batch is printed a second time."""
    do.story.step(f"console sink: {_FILES} files, {_FILES} batches")
    options = do.options(CONSOLE)
    run_devices(do.story, do.spark, options)
    do.story.tree(options.checkpoint)
    do.story.step("delete the latest commit and start again")
    offset, planned = do.delete_commit(options.checkpoint)
    inspect(do.story, options.checkpoint)
    printed = console(do.lab.folder / "spark")
    before = printed.read_text(encoding="utf-8")
    ran = run_devices(do.story, do.spark, options)
    more = printed.read_text(encoding="utf-8").removeprefix(before)
    do.story.say(more)
    do.story.prove(
        "Without its commit the latest batch runs again, with the range that its offsets file has.",
        *reran(ran, offset, planned, options.checkpoint),
        same("the console shows", [line for line in more.splitlines() if line[:6] == "Batch:"], [f"Batch: {_LAST}"]),
        same("rows on the console", more.count("|event-"), len(do.files[_LAST])),
    )


def with_a_real_sink(do: Experiment, sink: str) -> None:
    """Count the rows in the output after the second run of the batch."""
    what, reason, (adds, removes) = _SINKS[sink]
    do.story.step(f"{what} (--sink {sink})")
    options = do.options(sink)
    expected: list[Row] = [row for rows in do.files for row in rows]
    run_devices(do.story, do.spark, options)
    first = compare(expected, rows_in(do.spark, options))
    do.story.say(f"output: {first}")
    files = data_files(do.lab.folder / f"output_{sink}")
    if sink in _LOG:
        do.story.file(do.lab.folder / f"output_{sink}" / _LOG[sink], do.lab.folder.root)
    offset, planned = do.delete_commit(options.checkpoint)
    ran = run_devices(do.story, do.spark, options)
    second = compare(expected, rows_in(do.spark, options))
    do.story.say(f"output: {second}")
    after = data_files(do.lab.folder / f"output_{sink}")
    new, gone = len(after - files), len(files - after)
    repeats = sink == FOREACH_APPEND
    batch = Counter(do.files[_LAST]) if repeats else Counter[Row]()
    verdict = f"duplicates exactly that batch's {batch.total()} rows" if repeats else "has no row twice"
    do.story.prove(
        f"{what[0].upper()}{what[1:]} {verdict}: {reason}.",
        *reran(ran, offset, planned, options.checkpoint),
        Fact(f"data files: {new} new, {gone} gone", (new > 0, gone > 0) == (adds, removes)),
        Fact(f"before: {first}", first.clean),
        Fact(f"after: {second}", second.duplicated == batch and not second.lost and not second.unexpected),
    )


def clocks(do: Experiment) -> None:
    """Two columns of times, one of the query and one added to each batch: which of them a second run keeps."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - in the JVM's session only

    do.story.step("processed_time = current_timestamp(), in the query and inside foreachBatch")
    do.story.say("rows.withColumn('processed_time', current_timestamp()).writeStream.foreachBatch(...)")
    do.story.say("inside: batch.withColumn('written_time', current_timestamp())")
    options = replace(do.options(FOREACH_APPEND), checkpoint=do.lab.folder / "checkpoint_clocks")
    seen: dict[int, list[tuple[int, int]]] = {}

    def look(batch: DataFrame, number: int) -> None:
        written = batch.withColumn("written_time", F.current_timestamp())
        times = written.select(F.unix_millis("processed_time"), F.unix_millis("written_time")).distinct().collect()
        seen.setdefault(number, []).extend((row[0], row[1]) for row in times)

    def run_once() -> None:
        rows = devices(do.spark, options).withColumn("processed_time", F.current_timestamp())
        writer = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(options.checkpoint))
        writer.foreachBatch(look).start().awaitTermination()

    run_once()
    _, planned = do.delete_commit(options.checkpoint)
    in_offsets = json.loads(planned.splitlines()[1])["batchTimestampMs"]
    run_once()
    for processed, written in seen[_LAST]:
        do.story.say(f"batch {_LAST}: processed_time {processed} ms, written_time {written} ms")
    do.story.prove(
        "current_timestamp() of a query is the time in offsets/N: a batch that runs again has the same."
        " Inside foreachBatch it is a new one each time, so rows differ after a second run.",
        same("runs of the batch", len(seen[_LAST]), 2),
        same("processed_time of each run", [processed for processed, _ in seen[_LAST]], [in_offsets] * 2),
        Fact(f"written_time of each run: {[each for _, each in seen[_LAST]]}", len({e for _, e in seen[_LAST]}) == 2),
    )


def experiment(lab: Lab) -> None:
    """Run the sinks in one JVM: a restart of the query is enough."""
    with spark_session(lab.settings, lab.folder / "spark", delta=True) as spark:
        do = Experiment(lab, spark)
        on_the_console(do)
        for sink in _SINKS:
            with_a_real_sink(do, sink)
        clocks(do)


if __name__ == "__main__":
    sys.exit(run(NAME, experiment))
