"""Judge the Spark synchronizer: read topic, checkpoint and output, then ask the judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from contract.settings import Settings
from contract.visit import output_line
from verdict.cluster import Cluster, Spans, size
from verdict.digest import digest
from verdict.model import Unknown, Verdict
from verdict.progress import Progress
from verdict.quiet import Quiet, refuse_gap
from verdict.spark_checkpoint import newest_commit
from verdict.spark_judge import SparkFacts, judge
from verdict.spark_output import METADATA_FOLDER, Output, line_at, lines, list_output
from verdict.store import Appender, open_store

SINKS = ("files", "foreach-append", "foreach-overwrite")


@dataclass(frozen=True)
class SparkPlaces:
    """Where the synchronizer's sink keeps its output and its checkpoint."""

    sink: str
    output: Path
    checkpoint: Path


def places(settings: Settings, sink: str | None, output: Path | None, checkpoint: Path | None) -> SparkPlaces:
    """Choose the folders of a sink; `output` and `checkpoint` replace the stack's own."""
    chosen = sink or settings.text("SPARK_SINK")
    query = settings.query(chosen)
    return SparkPlaces(
        chosen,
        (output or settings.output / query).resolve(),
        (checkpoint or settings.spark_checkpoints / query).resolve(),
    )


def judge_spark(settings: Settings, cluster: Cluster, where: SparkPlaces) -> Verdict:
    """Read everything and judge it. Raises Unknown when something cannot be read or still moves."""
    topic = settings.text("VISITS_TOPIC")
    quiet = Quiet(lambda: cluster.spans(topic, committed=False))
    source = cluster.spans(topic, committed=True)
    refuse_gap(topic, source)
    # The checkpoint before the output: what it calls committed is then in the output that is read after it.
    commit = newest_commit(where.checkpoint, topic)
    if commit:
        _refuse_foreign_checkpoint(where.checkpoint, commit.ends, topic, source)
    with open_store() as connection:
        output = list_output(where.output, with_log=where.sink == "files")
        if output.files and where.sink == "files" and not output.logged:
            raise Unknown(
                f"{where.output} has files but no {METADATA_FOLDER}, so what is committed cannot be told from "
                "leftovers; is --sink right?"
            )
        _load_lines(connection, output)
        _load_sent(connection, cluster, topic, source)
        quiet.require(f"topic {topic} still grows; stop the generator (scripts/generator_stop.sh) and judge again")
        return judge(
            connection,
            SparkFacts(
                topic=topic,
                commit=commit,
                files=[file.name for file in output.files],
                record=lambda partition, offset: _value(cluster, topic, partition, offset),
                line_text=lambda file, position: line_at(output.files[file], position),
                missing=output.missing,
                notes=_notes(output),
            ),
        )


def _load_lines(connection: duckdb.DuckDBPyConnection, output: Output) -> None:
    with Appender(connection, "lines") as table, Progress("output", len(output.files), "files") as progress:
        for number, file in enumerate(output.files):
            first = 1
            for positions, texts in lines(file):
                count = len(texts)
                table.extend(
                    [number] * count,
                    range(first, first + count),
                    positions,
                    [digest(text) for text in texts],
                    [file.leftover] * count,
                )
                first += count
            progress.advance(1)


def _load_sent(connection: duckdb.DuckDBPyConnection, cluster: Cluster, topic: str, source: Spans) -> None:
    with Appender(connection, "sent") as table, Progress(f"topic {topic}", size(source)) as progress:
        for batch in cluster.read(topic, source):
            table.extend(
                [message.partition() for message in batch],
                [message.offset() for message in batch],
                [digest(output_line(message.value())) for message in batch],
            )
            progress.advance(len(batch))


def _refuse_foreign_checkpoint(checkpoint: Path, ends: dict[int, int], topic: str, source: Spans) -> None:
    for partition, end in ends.items():
        if partition not in source or end > source[partition].end:
            held = source[partition].end if partition in source else 0
            raise Unknown(
                f"{checkpoint} has committed partition {partition} of {topic} up to offset {end}, but the topic has "
                f"{held}: it is not the topic that was read (scripts/down.sh --wipe starts clean)"
            )


def _value(cluster: Cluster, topic: str, partition: int, offset: int) -> bytes | None:
    message = cluster.record(topic, partition, offset)
    return None if message is None else message.value()


def _notes(output: Output) -> tuple[str, ...]:
    absent = () if output.exists else (f"the output folder {output.folder} does not exist",)
    return (*absent, *output.resized[:3])
