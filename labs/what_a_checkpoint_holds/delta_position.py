"""A Delta table as source: the meaning of its offset, over several appends and a restart in the middle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.frame.count import compare
from labs.frame.inspect import inspect
from labs.frame.progress import Batch, batches
from labs.frame.run import Lab
from labs.frame.story import Fact, same
from spark_job.batch_sinks import delta_once
from spark_job.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES_A_BATCH = 2
_ROWS_A_FILE = 10
_FAILS = 3
_FAILURE = "the lab fails here, before the commit"
Position = tuple[int, int, bool]
"""(reservoirVersion, index, isStartingVersion) of an offset."""


class DeltaSource:
    """A table that grows, and a query that reads it into another table, each batch once."""

    def __init__(self, lab: Lab, spark: SparkSession) -> None:
        self.lab, self.spark, self.story = lab, spark, lab.story
        self.table, self.output = lab.folder / "delta_table", lab.folder / "delta_output"
        self.checkpoint = lab.folder / "delta_source"
        self.files: list[int] = []

    def append(self, files: int) -> None:
        """Append one version to the table, of this many files."""
        first = sum(self.files) * _ROWS_A_FILE
        rows = self.spark.range(first, first + files * _ROWS_A_FILE, 1, files)
        rows.write.format("delta").mode("append").save(str(self.table))
        self.story.say(f"version {len(self.files)} of the table: {files} files")
        self.files.append(files)

    def run(self, fails: int | None = None) -> list[Batch]:
        """Read all existing rows; in batch `fails` an error is raised after the write and before the commit."""
        write_once = delta_once(self.output, self.checkpoint)

        def write(batch: DataFrame, batch_id: int) -> None:
            write_once(batch, batch_id)
            if batch_id == fails:
                raise RuntimeError(_FAILURE)

        from pyspark.errors import StreamingQueryException  # noqa: PLC0415

        rows = self.spark.readStream.format("delta").option("maxFilesPerTrigger", _FILES_A_BATCH).load(str(self.table))
        writer = rows.writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.checkpoint)).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if fails is None or _FAILURE not in str(error):
                raise
            self.story.say(f"batch {fails} failed after its write and before its commit, as planned")
        ran = batches(query)
        self.story.say(f"Spark committed {'; '.join(map(str, ran))}")
        return ran

    def offset(self, batch: int) -> dict[str, Any]:
        """Return the offset of a batch by `offsets/N`."""
        return dict(json.loads((self.checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()[-1]))

    def expected(self) -> list[Position]:
        """Return the position after each batch, computed only from the number of files of each version.

        After the last file of a version it is the next version with index -1: nothing of it is read yet.
        """
        # The first version is read as a snapshot: the content of the table when the query began.
        places = [(version, index) for version, files in enumerate(self.files) for index in range(files)]
        ends = []
        done = 0
        while done < len(places):
            # A batch ends where the snapshot ends.
            limit = self.files[0] if done < self.files[0] else len(places)
            done = min(done + _FILES_A_BATCH, limit)
            version, index = places[done - 1]
            over = index == self.files[version] - 1
            ends.append((version + 1, -1, False) if over else (version, index, version == 0))
        return ends


def position(offset: dict[str, Any]) -> Position:
    """Return the part of an offset that changes."""
    return offset["reservoirVersion"], offset["index"], offset["isStartingVersion"]


def table_id(table: Path) -> str:
    """Return the id that a Delta table's first log entry gives it."""
    lines = (table / "_delta_log" / f"{0:020d}.json").read_text(encoding="utf-8").splitlines()
    [metadata] = [entry["metaData"] for entry in map(json.loads, lines) if "metaData" in entry]
    return str(metadata["id"])


def positions_of_a_delta_source(lab: Lab, spark: SparkSession) -> Path:
    """Run the steps; returns the table."""
    do = DeltaSource(lab, spark)
    do.story.step("a Delta table as source: the snapshot at the start")
    do.append(3)
    ran = do.run()
    do.story.step("two more versions, and a failure in the middle of them")
    do.append(3)
    do.append(1)
    ran += do.run(fails=_FAILS)
    planned = (do.checkpoint / "offsets" / str(_FAILS)).read_bytes()
    failed_between = Checkpoint(do.checkpoint).interrupted() == _FAILS
    inspect(do.story, do.checkpoint)
    do.story.step("one more version, and the restart")
    do.append(1)
    replayed = do.run()
    ran += replayed
    for batch in ran:
        do.story.say(f"offsets/{batch.id}: {json.dumps(do.offset(batch.id))}")
    _prove(do, ran, replayed[0], failed_between and (do.checkpoint / "offsets" / str(_FAILS)).read_bytes() == planned)
    return do.table


def _prove(do: DeltaSource, ran: list[Batch], replayed: Batch, same_plan: bool) -> None:
    offsets = [do.offset(batch.id) for batch in ran]
    do.story.prove(
        "A Delta source's offset is a place in the table's log: reservoirId is the table, and everything before "
        "reservoirVersion, and of that version the files up to index, has been read; isStartingVersion means that "
        "it is still in the snapshot with which it began.",
        same(
            "reservoirId of all offsets, as in the table's log",
            {o["reservoirId"] for o in offsets},
            {table_id(do.table)},
        ),
        same(
            "(reservoirVersion, index, isStartingVersion) after each batch",
            [position(o) for o in offsets],
            do.expected(),
        ),
        Fact("Spark's progress has the same", [batch.end[0] for batch in ran] == offsets),
    )
    rows = [row[0] for row in do.spark.read.format("delta").load(str(do.output)).collect()]
    difference = compare(range(sum(do.files) * _ROWS_A_FILE), rows)
    do.story.prove(
        "Restarted in the middle of a version, it runs the same batch again, with the range that was planned, and then "
        "continues: no row is lost or repeated.",
        same("first batch of the restart", replayed.id, _FAILS),
        Fact(f"offsets/{_FAILS} was planned before the failure and is unchanged", same_plan),
        same(f"batch {_FAILS} starts at", position(replayed.start[0]), position(do.offset(_FAILS - 1))),
        Fact(f"output: {difference}", difference.clean),
    )
