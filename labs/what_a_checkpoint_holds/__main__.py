"""Walkthrough 14: state, watermark, a Delta source's position. `scripts/walkthroughs/14_what_a_checkpoint_holds.sh`."""

from __future__ import annotations

import json
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labs.frame.inspect import inspect
from labs.frame.programs import LIMIT_SECONDS, program
from labs.frame.progress import Batch
from labs.frame.run import Lab, run
from labs.frame.session import spark_session
from labs.frame.story import Fact, same, shown
from labs.what_a_checkpoint_holds.delta_position import positions_of_a_delta_source
from labs.what_a_checkpoint_holds.stateful import (
    Key,
    StateReader,
    counts_in_state,
    page_counts,
    run_stateful,
    visits,
    visits_in_state,
    without_duplicates,
)
from labs.what_a_checkpoint_holds.visits import Seen, visits_in_files
from labs.what_a_checkpoint_holds.visits import page_counts as counted_without_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "14_what_a_checkpoint_holds"
_FILES, _PER_FILE = 6, 100
_KILLED = 3
# By default Spark makes snapshots in the background, every minute and after 10 changes: too rare for a lab.
_STATE = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
}
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True)
class Provider:
    """A state store: its class, and the extensions of its change files and snapshots."""

    name: str
    simple_class: str
    changes: str
    snapshot: str


_PROVIDERS = (
    Provider("HDFS-backed", "HDFSBackedStateStoreProvider", ".delta", ".snapshot"),
    Provider("RocksDB", "RocksDBStateStoreProvider", ".changelog", ".zip"),
)


@dataclass(frozen=True)
class Query:
    """A stateful query: its name, its operator, its rows, and its expected state, counted without Spark.

    `expected`: all rows of its output and state, by (milliseconds, name). `remembers_ms`: how long after
    the key's time the state keeps a key. `fields`: of the state's schema, key and value.
    """

    name: str
    operator: str
    rows: DataFrame
    read_state: StateReader
    expected: dict[Key, int]
    remembers_ms: int
    fields: tuple[str, ...]


class Experiment:
    """The visits in their files, and the stack's window and delay."""

    def __init__(self, lab: Lab, spark: SparkSession) -> None:
        self.lab, self.spark, self.story = lab, spark, lab.story
        self.input = lab.folder / "input"
        self.window_seconds = lab.settings.number("FLINK_WINDOW_SECONDS")
        self.delay_seconds = lab.settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")
        self.files = visits_in_files(self.input, _FILES, _PER_FILE, "--duplicated-percent", "10")

    def queries(self) -> tuple[Query, Query]:
        """Return the two queries."""
        every: list[Seen] = [visit for visits_of in self.files for visit in visits_of]
        stream = visits(self.spark, self.input, self.delay_seconds)
        counts = counted_without_spark(every, self.window_seconds * 1000)
        once = {(visit.event_time, visit.visit_id): 1 for visit in every}
        return (
            Query(
                "page counts over windows",
                "stateStoreSave",
                page_counts(stream, self.window_seconds),
                counts_in_state,
                dict(counts),
                0,
                ("window", "page", "count"),
            ),
            Query(
                "deduplication",
                "dedupeWithinWatermark",
                without_duplicates(stream),
                visits_in_state,
                once,
                self.delay_seconds * 1000,
                ("visit_id", "event_time", "expiresAtMicros"),
            ),
        )


def log_value(checkpoint: Path, log: str, batch: int, name: str) -> int:
    """Return a number of line 2 of `offsets/N` or `commits/N`."""
    line = (checkpoint / log / str(batch)).read_text(encoding="utf-8").splitlines()[1]
    return int(json.loads(line)[name])


def watermark(do: Experiment, checkpoint: Path, ran: list[Batch]) -> None:
    """The watermark in the two logs, in Spark's progress, and computed from the visits."""
    do.story.file(checkpoint / "commits" / "2", checkpoint)
    do.story.say((checkpoint / "offsets" / "3").read_text(encoding="utf-8").splitlines()[1][:80] + " ...")
    newest, expected = 0, [0]
    for visits_of in do.files:
        newest = max(newest, *(visit.event_time for visit in visits_of))
        expected.append(newest - do.delay_seconds * 1000)
    numbers = range(len(ran))
    do.story.prove(
        f"commits/N holds the watermark for batch N+1 (the newest event time so far, minus {do.delay_seconds} s), "
        "offsets/N+1 has the one that batch N+1 uses.",
        same(
            "nextBatchWatermarkMs in commits/0 to commits/5",
            [log_value(checkpoint, "commits", n, "nextBatchWatermarkMs") for n in range(_FILES)],
            expected[1:],
        ),
        Fact(
            "batchWatermarkMs in offsets/N+1 is the same for each",
            [log_value(checkpoint, "offsets", n, "batchWatermarkMs") for n in numbers] == expected[: len(ran)],
        ),
        Fact(
            "so is the watermark in Spark's progress",
            [batch.watermark_ms for batch in ran] == expected[: len(ran)],
        ),
        same("batches; the last one reads nothing, it only advances the watermark", [b.rows for b in ran][-1], 0),
    )


def schema_fields(path: Path) -> set[str]:
    """Return the names in a state schema file: length-prefixed JSON of the key's and the value's type."""
    return set(re.findall(r'"name":"(\w+)"', path.read_bytes().decode("utf-8", "replace")))


def state(do: Experiment, query: Query, provider: Provider) -> tuple[Path, list[Batch]]:
    """The state folder of one query with one provider, and its rows by Spark's own readers."""
    do.story.step(f"{query.name}, state in the {provider.name} provider")
    do.spark.conf.set(_PROVIDER, f"org.apache.spark.sql.execution.streaming.state.{provider.simple_class}")
    do.spark.conf.set(_CHANGELOG, "true")
    checkpoint = do.lab.folder / f"{provider.name.split('-')[0].lower()}_{query.name.split()[0]}"
    ran, out = run_stateful(query.rows, checkpoint, _FILES - 2)
    do.story.tree(checkpoint / "state")
    operator = json.loads((checkpoint / "state/0/_metadata/metadata").read_text("utf-8").splitlines()[1])
    do.story.file(checkpoint / "state/0/_metadata/metadata", checkpoint)
    do.story.say(
        f"state/0/0/_metadata/schema has the fields {sorted(schema_fields(checkpoint / 'state/0/0/_metadata/schema'))}"
    )
    do.story.command(f'spark.read.format("state-metadata").load("{shown(checkpoint)}")')
    [metadata] = do.spark.read.format("state-metadata").load(str(checkpoint)).collect()
    do.story.say(str(metadata.asDict()))
    last = len(ran) - 1
    pinned = json.loads((checkpoint / "offsets/0").read_text("utf-8").splitlines()[1])["conf"]
    partitions = int(pinned["spark.sql.shuffle.partitions"])
    folders = [checkpoint / "state/0" / str(number) for number in range(partitions)]
    changes = [sorted(int(path.stem) for path in folder.glob(f"*{provider.changes}")) for folder in folders]
    snapshots = [path.name for folder in folders for path in folder.glob(f"*{provider.snapshot}")]
    do.story.prove(
        f"{query.name.capitalize()}, {provider.name}: state/0 has a folder per partition, with one file of changes per "
        "batch, full snapshots, and the schema of its rows.",
        same("provider, pinned in offsets/0", pinned[_PROVIDER].split(".")[-1], provider.simple_class),
        same(f"versions with a {provider.changes} file", changes, [list(range(1, last + 2))] * partitions),
        Fact(f"snapshots: {', '.join(sorted(snapshots))}", bool(snapshots)),
        same(
            "fields in the schema",
            [f for f in query.fields if f in schema_fields(folders[0] / "_metadata/schema")],
            list(query.fields),
        ),
        same("operator in _metadata/metadata", operator["operatorInfo"]["operatorName"], query.operator),
        same(
            "the same by state-metadata, with partitions and last batch",
            (metadata["operatorName"], metadata["numPartitions"], metadata["maxBatchId"]),
            (query.operator, partitions, last),
        ),
    )
    rows_of_state(do, query, checkpoint, ran, out)
    return checkpoint, ran


def rows_of_state(do: Experiment, query: Query, checkpoint: Path, ran: list[Batch], out: list[tuple[Key, int]]) -> None:
    """Compare the rows in the state, and those that left it, with the same counted without Spark."""
    do.story.command(f'spark.read.format("statestore").load("{shown(checkpoint)}")')
    inside = query.read_state(do.spark, checkpoint, None)
    do.story.say("\n".join(f"{key}: {count}" for key, count in sorted(inside.items())[:3]) + "\n...")
    bound = ran[-1].watermark_ms - query.remembers_ms
    expected_inside = {key: count for key, count in query.expected.items() if key[0] > bound}
    emitted = query.expected if query.remembers_ms else {k: c for k, c in query.expected.items() if k[0] <= bound}
    earlier = query.read_state(do.spark, checkpoint, 0)
    do.story.prove(
        "Read by Spark's statestore reader, the state has exactly the keys that the watermark has not passed; "
        "with the output, nothing is lost or counted twice.",
        Fact(
            f"{len(inside)} rows in the state, {len(expected_inside)} counted without Spark",
            inside == expected_inside != {},
        ),
        Fact(
            f"{len(out)} rows in the output, {len(emitted)} counted without Spark", out == sorted(emitted.items()) != []
        ),
        Fact(f"the state after batch 0 can be read too: {len(earlier)} rows", bool(earlier) and earlier != inside),
    )


def after_a_kill(do: Experiment, query: Query) -> None:
    """A batch with state is killed after its state was written, and runs again: nothing is counted twice."""
    do.story.step(f"SIGKILL in batch {_KILLED}, after its state is written and before it is committed; then a restart")
    do.spark.conf.set(_PROVIDER, f"org.apache.spark.sql.execution.streaming.state.{_PROVIDERS[0].simple_class}")
    checkpoint = do.lab.folder / "killed_page"
    words = [str(do.input), str(checkpoint), str(do.lab.folder / "killed_spark"), str(_KILLED)]
    do.story.command(
        f"python -m labs.what_a_checkpoint_holds.killed {' '.join(shown(Path(each)) for each in words[:3])} {_KILLED}"
    )
    module = "labs.what_a_checkpoint_holds.killed"
    with program([sys.executable, "-m", module, *words], {}, do.lab.folder / "killed.log") as dying:
        code = dying.wait(seconds=LIMIT_SECONDS)
    inspect(do.story, checkpoint)
    written = (checkpoint / "state" / "0" / "0" / f"{_KILLED + 1}.delta").exists()
    committed = (checkpoint / "commits" / str(_KILLED)).exists()
    passed = json.loads((checkpoint / "offsets" / str(_KILLED - 1)).read_text("utf-8").splitlines()[1])
    ran, out = run_stateful(query.rows, checkpoint, _FILES - 2)
    inside = query.read_state(do.spark, checkpoint, None)
    expected = {key: count for key, count in query.expected.items() if key[0] > ran[-1].watermark_ms}
    # The windows that the killed program had not written: batch 3 has visits of most of them.
    emitted = sorted(
        (key, count)
        for key, count in query.expected.items()
        if passed["batchWatermarkMs"] < key[0] <= ran[-1].watermark_ms
    )
    do.story.prove(
        "State that a killed batch has written does not count: the batch runs again on the state of the batch before.",
        same("exit code of the query", code, -signal.SIGKILL),
        Fact(f"state/0/0/{_KILLED + 1}.delta was there after the kill", written),
        Fact(f"commits/{_KILLED} was not", not committed),
        same("the restart began with batch", ran[0].id, _KILLED),
        Fact(f"{len(inside)} rows in the state, {len(expected)} counted without Spark", inside == expected != {}),
        Fact(f"{len(out)} rows in the output, {len(emitted)} counted without Spark", out == emitted != []),
    )


def no_delta_table(do: Experiment, checkpoint: Path, table: Path) -> None:
    """`1.delta` is a state store's file of changes; it shares only its name with Delta Lake."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    do.story.step("state/0/0/1.delta is not a Delta Lake table")
    first = checkpoint / "state/0/0/1.delta"
    head = first.read_bytes()[:8]
    do.story.command(f"head --bytes 8 {shown(first)}")
    do.story.say(head.decode("ascii", "replace"))
    refusals = []
    for path in (checkpoint / "state/0/0", checkpoint):
        try:
            do.spark.read.format("delta").load(str(path)).collect()
            refusals.append("read")
        except AnalysisException as error:
            refusals.append(str(error.getCondition()))
    do.story.prove(
        "state/.../1.delta is a compressed file of changes of a state store and has nothing to do with Delta Lake.",
        same("its first bytes", head, b"LZ4Block"),
        same("Delta Lake's log folders in the checkpoint", len(list(checkpoint.rglob("_delta_log"))), 0),
        Fact(f"Delta Lake's reader on state/0/0 and on the checkpoint: {', '.join(refusals)}", "read" not in refusals),
        Fact("the same reader reads a real table", do.spark.read.format("delta").load(str(table)).count() > 0),
    )


def experiment(lab: Lab) -> None:
    """Run the steps in one JVM."""
    with spark_session(lab.settings, lab.folder / "spark", delta=True, more=_STATE) as spark:
        do = Experiment(lab, spark)
        counts, once = do.queries()
        checkpoint, ran = state(do, counts, _PROVIDERS[0])
        do.story.step("the watermark in the logs")
        watermark(do, checkpoint, ran)
        inspect(do.story, checkpoint)
        state(do, counts, _PROVIDERS[1])
        for provider in _PROVIDERS:
            state(do, once, provider)
        after_a_kill(do, counts)
        table = positions_of_a_delta_source(lab, spark)
        no_delta_table(do, checkpoint, table)


if __name__ == "__main__":
    sys.exit(run(NAME, experiment))
