"""Walkthrough 12: the files that a file source reads. `scripts/walkthroughs/12_devices_from_files.sh`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.inspector.spark.log import list_log
from faultline.inspector.spark.sources import log_entries
from labs.frame import events
from labs.frame.count import compare
from labs.frame.devices_run import rows_in, run_devices
from labs.frame.events import Row, rows_of
from labs.frame.inspect import inspect
from labs.frame.progress import Batch
from labs.frame.run import Lab, run
from labs.frame.session import spark_session
from labs.frame.story import Fact, same
from spark_job.devices_file_stream import DeviceOptions
from spark_job.options import FOREACH_APPEND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "12_devices_from_files"
_EVENTS = 3
_HOUR = 3600


class Experiment:
    """The query, its input folder, and the rows that it should have written by now."""

    def __init__(self, lab: Lab, spark: SparkSession) -> None:
        self.lab, self.spark, self.story = lab, spark, lab.story
        self.input = lab.folder / "input"
        # The naive sink: it writes each row as often as it was read.
        self.options = DeviceOptions(
            self.input, lab.folder / "checkpoint", lab.folder / "output", FOREACH_APPEND, max_file_age=None
        )
        self.expected: list[Row] = []

    def run(self, due: list[Row], **changes: object) -> list[Batch]:
        """Run the query; `due` are the rows that it must write."""
        self.expected += due
        return run_devices(self.story, self.spark, replace(self.options, **changes))  # type: ignore[arg-type]

    def counted(self) -> Fact:
        """Compare the output with what is expected by now."""
        difference = compare(self.expected, rows_in(self.spark, self.options))
        return Fact(f"output: {difference}", difference.clean)

    def log(self) -> list[tuple[int, str]]:
        """(batch, file name) of each entry in the source's log, `sources/0`."""
        log = list_log(Path(self.options.checkpoint) / "sources" / "0")
        entries = [entry for number in log.valid() for entry in log_entries(log, number)]
        return sorted((int(entry["batchId"]), Path(entry["path"]).name) for entry in entries)


def one_file_a_batch(do: Experiment) -> None:
    """Three files, three batches, three entries in the source's log."""
    do.story.step("three files of device events: three batches")
    names = [f"devices-{number}.json" for number in range(3)]
    due = [
        row
        for number, name in enumerate(names)
        for row in events.write(do.input / name, rows_of(number * _EVENTS, _EVENTS), number)
    ]
    do.story.file(do.input / names[0], do.lab.folder.root)
    ran = do.run(due)
    do.story.tree(do.options.checkpoint)
    for path in ("offsets/1", "sources/0/1", "commits/1"):
        do.story.file(do.options.checkpoint / path, do.options.checkpoint)
    inspect(do.story, do.options.checkpoint)
    do.story.prove(
        "A file source reads one file per batch and records each file's path, with its batch, in sources/0.",
        same(
            "batches and their events, by Spark's progress",
            [(batch.id, batch.rows) for batch in ran],
            [(n, _EVENTS) for n in range(3)],
        ),
        same("sources/0", do.log(), list(enumerate(names))),
        do.counted(),
    )


def dropped_again(do: Experiment) -> None:
    """The same file again, then the same name with other content."""
    do.story.step("the same file dropped again")
    path = do.input / "devices-1.json"
    do.lab.folder.delete(path)
    events.write(path, rows_of(_EVENTS, _EVENTS), 60)
    do.story.say(f"{path.name} was deleted and copied in again: same name, same content, a newer modification time")
    ran = do.run([])
    do.story.prove(
        "The same file dropped again is ignored: its path is in the source's log.",
        same("batches", len(ran), 0),
        same("entries of devices-1.json in sources/0", do.log().count((1, path.name)), 1),
        do.counted(),
    )
    do.story.step("the same name with new content")
    changed = rows_of(100, _EVENTS)
    events.write(path, changed, 120)
    do.story.file(path, do.lab.folder.root)
    ran = do.run([])
    there = {row for row in rows_in(do.spark, do.options) if row in changed}
    do.story.prove(
        "New content under an old name is silently ignored too: Spark compares only the path, not "
        "the content or the modification time. A producer that rewrites files loses data.",
        same("batches", len(ran), 0),
        same("rows of the new content in the output", len(there), 0),
        do.counted(),
    )


def renamed(do: Experiment) -> None:
    """A path that the log does not know is a new file, whatever its content."""
    do.story.step("the file renamed")
    due = rows_of(100, _EVENTS)
    (do.input / "devices-1.json").rename(do.input / "devices-1b.json")
    ran = do.run(due)
    do.story.prove(
        "A renamed file is a new file: it is read, and so are rows that were read before under another name.",
        same("batches and their events", [(batch.id, batch.rows) for batch in ran], [(3, _EVENTS)]),
        same("newest entry of sources/0", do.log()[-1], (3, "devices-1b.json")),
        do.counted(),
    )


def forgotten(do: Experiment) -> None:
    """maxFileAge: how long an entry in the log counts once newer files have come."""
    do.story.step("how long is a name remembered? maxFileAge")
    do.story.say("a file that is two hours newer than all others, read with maxFileAge 1 hour (the default is 7 days)")
    newest = events.write(do.input / "devices-4.json", rows_of(200, _EVENTS), 2 * _HOUR)
    do.run(newest, max_file_age="1h")
    do.story.say("devices-0.json with new content and as new as that file; and late.json, a new name with an old time")
    rewritten = events.write(do.input / "devices-0.json", rows_of(300, _EVENTS), 2 * _HOUR + 1)
    late = events.write(do.input / "late.json", rows_of(400, _EVENTS), 300)
    ran = do.run(rewritten, max_file_age="1h")
    do.story.prove(
        "A name is forgotten when its entry is older, by maxFileAge, than the newest file seen (the files' times, not "
        "the clock): then it is read as new. A file that arrives with a time before that bound is not read.",
        same("batches and their events", [(batch.id, batch.rows) for batch in ran], [(5, _EVENTS)]),
        same("newest entry of sources/0", do.log()[-1], (5, "devices-0.json")),
        do.counted(),
    )
    do.story.step("the same with latestFirst")
    ran = do.run(late, max_file_age="1h", latest_first=True)
    do.story.prove(
        "With latestFirst and a limit of files per batch maxFileAge is ignored: no file is too old, no name forgotten.",
        same("batches and their events", [(batch.id, batch.rows) for batch in ran], [(6, _EVENTS)]),
        same("newest entry of sources/0", do.log()[-1], (6, "late.json")),
        do.counted(),
    )


def checkpoint_deleted(do: Experiment) -> None:
    """Without the log, every file is new."""
    do.story.step("the checkpoint deleted")
    do.lab.folder.delete(do.options.checkpoint)
    files = sorted(do.input.iterdir())
    every_row = [
        (event["eventId"], device["deviceId"], device["temperature"])
        for path in files
        for event in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        for device in event["data"]["devices"]
    ]
    ran = do.run(every_row)
    do.story.prove(
        "With the checkpoint deleted every file is read again, from batch 0 on: this sink writes those rows again.",
        same("batches", [batch.id for batch in ran], list(range(len(files)))),
        same("events", sum(batch.rows for batch in ran), len(files) * _EVENTS),
        do.counted(),
    )


def experiment(lab: Lab) -> None:
    """Run the steps in one JVM: a restart of the query is enough."""
    with spark_session(lab.settings, lab.folder / "spark") as spark:
        do = Experiment(lab, spark)
        for part in (one_file_a_batch, dropped_again, renamed, forgotten, checkpoint_deleted):
            part(do)


if __name__ == "__main__":
    sys.exit(run(NAME, experiment))
