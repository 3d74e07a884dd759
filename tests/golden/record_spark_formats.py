"""Record small Spark checkpoints, one for each format of their files, by real runs without a broker; or restart them.

Usage: python tests/golden/record_spark_formats.py record [RECIPE...]
       python tests/golden/record_spark_formats.py restart ANSWER SECONDS FOLDER...

Runs in an environment of the release that is to do it (docker/requirements/spark-*.lock). `record` leaves
<recipe>/checkpoint in the archive of the release, and leaves out recipes that the release has no feature for. `restart`
starts in each FOLDER (whose last part is the recipe's name) the same query again until a batch is committed, or SECONDS
are over, and appends to ANSWER a line of JSON: the folder, the error (empty when there was none), batches committed.
GOLDEN_SPARK_JARS names jars, comma-separated: Delta's for the recipe delta. The recipe processor needs pandas and
protobuf, which no lock has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.golden.archives import SCRATCH, recorded
from tests.golden.record_spark import session

RELEASE = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STREAMING = "spark.sql.streaming."
FILES = 4
SECONDS = 240
"""Seconds that a query has for the commits that it makes: the first one of a process waits for its start."""


def _nothing(rows: DataFrame, _batch: int) -> None:
    """Compute a batch and write it nowhere: what is recorded is the checkpoint."""
    rows.collect()


def _file(source: Path, number: int) -> None:
    source.mkdir(parents=True, exist_ok=True)
    lines = [f'{{"visit_id":"v{visit}","event_time":"2026-01-01T00:{number:02d}:00Z"}}\n' for visit in range(3)]
    path = source / f"visits-{number:02d}.json"
    path.write_text("".join(lines))
    os.utime(path, (1_767_225_600 + number, 1_767_225_600 + number))


def _input(out: Path) -> Path:
    """The folder that the query reads: for a restart the one that the checkpoint names, with a file more in it."""
    for entry in sorted((out / "checkpoint" / "sources").glob("*/[0-9]*")):
        # An entry may be damaged.
        lines = entry.read_text(errors="replace") if entry.is_file() else ""
        found = re.search(r'"path":"file://([^"]+)/visits-\d+\.json"', lines)
        if found:
            _file(Path(found[1]), FILES)
            return Path(found[1])
    return out / "input"


def _files(reader: Any, source: Path) -> DataFrame:
    """Read a folder of small files, one a batch."""
    for number in range(FILES):
        _file(source, number)
    rows: DataFrame = (
        reader.schema("visit_id STRING, event_time TIMESTAMP").option("maxFilesPerTrigger", 1).json(str(source))
    )
    return rows


def _writer(rows: DataFrame, out: Path) -> Any:
    writer = rows.writeStream.foreachBatch(_nothing)
    return writer.option("checkpointLocation", str(out / "checkpoint")).trigger(processingTime="0 seconds")


def _counts(spark: SparkSession, out: Path) -> Any:
    counts = _files(spark.readStream, _input(out)).groupBy("visit_id").count()

    def slowly(rows: DataFrame, _batch: int) -> None:
        rows.collect()
        # The maintenance, once a second, is to take a snapshot between two batches.
        time.sleep(3)

    writer = counts.writeStream.foreachBatch(slowly).outputMode("update")
    return writer.option("checkpointLocation", str(out / "checkpoint")).trigger(processingTime="0 seconds")


def _files_alone(spark: SparkSession, out: Path) -> Any:
    return _writer(_files(spark.readStream, _input(out)), out)


def _async(spark: SparkSession, out: Path) -> Any:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    writer = (
        rows.writeStream.format("noop")
        .option("asyncProgressTrackingEnabled", "true")
        .option("asyncProgressTrackingCheckpointIntervalMs", "2000")
    )
    return writer.option("checkpointLocation", str(out / "checkpoint")).trigger(processingTime="0 seconds")


def _async_off(spark: SparkSession, out: Path) -> Any:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(out / "checkpoint"))
    return writer.trigger(processingTime="0 seconds")


def _delta(spark: SparkSession, out: Path) -> Any:
    table = out / "delta"
    for start in (0, 100):
        spark.range(start, start + 4).write.format("delta").mode("append").save(str(table))
    return _writer(spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(table)), out)


def _named_sources(spark: SparkSession, out: Path) -> Any:
    reader: Any = spark.readStream
    devices = _files(reader.name("devices"), _input(out)).select("visit_id")
    reader = spark.readStream
    clock = reader.format("rate").name("clock").load().select(F.col("value").cast("string").alias("visit_id"))
    return _writer(devices.union(clock), out).trigger(processingTime="1 second")


def _named_sink(spark: SparkSession, out: Path) -> Any:
    reader: Any = spark.readStream
    rows = _files(reader.name("devices"), _input(out)).select("visit_id")
    writer: Any = rows.writeStream.format("text").option("checkpointLocation", str(out / "checkpoint"))
    writer = writer.option("path", str(out / "output")).trigger(processingTime="0 seconds")
    # pyspark has no method for it yet, Spark has.
    writer._jwrite.name("visits_text")
    return writer


def _windows_input(out: Path) -> Path:
    source = _input(out)
    source.mkdir(parents=True, exist_ok=True)
    line = '{"visit_id":"v0","event_time":"2026-01-01T00:30:00Z"}\n'
    (source / "visits-30.json").write_text(line)
    return source


def _windows(spark: SparkSession, out: Path) -> Any:
    """The query of files_windowed in record_spark.py, which writes its input."""
    rows = spark.readStream.schema("visit_id STRING, event_time TIMESTAMP").option("maxFilesPerTrigger", 1)
    windows = (
        rows.json(str(_windows_input(out)))
        .withWatermark("event_time", "2 minutes")
        .groupBy(F.window("event_time", "1 minute"), "visit_id")
        .count()
        .selectExpr("visit_id", "window.start AS window_start", "`count` AS visits")
    )
    writer = windows.writeStream.format("json").option("checkpointLocation", str(out / "checkpoint"))
    return writer.option("path", str(out / "output")).trigger(processingTime="0 seconds")


def _processor(spark: SparkSession, out: Path) -> Any:
    """A processor of its own for each visit_id, with a state of each kind and a timer."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor  # noqa: PLC0415  # since 4.0

    class Visits(StatefulProcessor):  # type: ignore[misc, unused-ignore]
        def init(self, handle: Any) -> None:
            self.handle = handle
            self.count = handle.getValueState("count", "visits INT")
            self.minutes = handle.getListState("minutes", "minute INT")
            self.by_minute = handle.getMapState("by_minute", "minute INT", "visits INT")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            for batch in rows:
                for at in batch["event_time"]:
                    before = self.count.get()[0] if self.count.exists() else 0
                    self.count.update((before + 1,))
                    self.minutes.appendValue((at.minute,))
                    self.by_minute.updateValue((at.minute,), (before + 1,))
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
            yield from ()

        def close(self) -> None:
            pass

    writer = _files(spark.readStream, _input(out)).groupBy("visit_id")
    rows = writer.transformWithStateInPandas(Visits(), "visit_id STRING", "update", "processingTime")
    return _writer(rows, out).outputMode("update")


@dataclass(frozen=True)
class Recipe:
    """`since`: the first release with the feature; `settings`: below spark.sql.streaming; `commits`: how many."""

    since: tuple[int, int]
    build: Callable[[SparkSession, Path], Any]
    settings: dict[str, str] = field(default_factory=dict)
    commits: int = FILES
    recorded: bool = True
    has_parts: Callable[[], bool] = lambda: True
    """Return whether everything that the case needs beyond Spark is there."""


STATE = {
    "stateStore.providerClass": ROCKSDB,
    "stateStore.minDeltasForSnapshot": "2",
    "stateStore.maintenanceInterval": "1s",
    "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
SOURCES = {"queryEvolution.enableSourceEvolution": "true"}
RECIPES = {
    "rocksdb": Recipe((3, 5), _counts, STATE),
    "async_progress": Recipe((3, 5), _async, commits=3),
    "delta": Recipe((3, 5), _delta, commits=2, has_parts=lambda: "delta" in os.environ.get("GOLDEN_SPARK_JARS", "")),
    "processor": Recipe((4, 0), _processor, STATE, has_parts=lambda: find_spec("pandas") is not None),
    "state_ids": Recipe((4, 0), _counts, STATE | {"stateStore.checkpointFormatVersion": "2"}),
    "offsets_v2": Recipe((4, 2), _files_alone, {"offsetLog.formatVersion": "2"}),
    "named_sources": Recipe((4, 2), _named_sources, SOURCES),
    "named_sink": Recipe((4, 2), _named_sink, SOURCES | {"queryEvolution.enableSinkEvolution": "true"}),
    # For a restart only: recorded by record_spark.py, or the query of another recipe changed.
    "files_windowed": Recipe((3, 5), _windows, recorded=False),
    "async_off": Recipe((3, 5), _async_off, recorded=False),
    "files_alone": Recipe((3, 5), _files_alone, recorded=False),
}


def _committed(out: Path) -> set[int]:
    return {int(path.name) for path in (out / "checkpoint" / "commits").glob("[0-9]*") if path.name.isdecimal()}


def run(spark: SparkSession, recipe: Recipe, out: Path, wanted: int, seconds: float = SECONDS) -> tuple[str, list[int]]:
    """Run the query until `wanted` more batches are committed; returns its error, if any, and those batches."""
    for name, value in recipe.settings.items():
        spark.conf.set(STREAMING + name, value)
    before, deadline, error, query = _committed(out), time.monotonic() + seconds, "", None
    try:
        query = recipe.build(spark, out).start()
        while query.isActive and len(_committed(out) - before) < wanted and time.monotonic() < deadline:
            query.awaitTermination(0.1)
        if query.exception() is not None:
            error = _in_a_line(query.exception())
    except Exception as caught:
        error = _in_a_line(caught)
    finally:
        if query is not None:
            query.stop()
        for name in recipe.settings:
            spark.conf.unset(STREAMING + name)
    return error, sorted(_committed(out) - before)


def _in_a_line(error: object) -> str:
    """Spark's words, and behind them the Java exception in which a function of Python ended."""
    lines = str(error).splitlines() or [type(error).__name__]
    return " ".join([lines[0], *(line for line in lines if line.startswith(": "))][:2])


def record(spark: SparkSession, names: list[str], release: str) -> None:
    """Record what is named, or all that this release can, into the archive of the release."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    for name, recipe in RECIPES.items():
        if name not in (names or RECIPES) or recipe.since > RELEASE or not (recipe.recorded and recipe.has_parts()):
            continue
        error, committed = run(spark, recipe, SCRATCH / release / name, recipe.commits)
        if error or len(committed) < recipe.commits:
            raise SystemExit(f"{name}: {error or f'{len(committed)} of {recipe.commits} batches in {SECONDS} s'}")
    with recorded(release) as target:
        for recipe_folder in (SCRATCH / release).iterdir():
            shutil.rmtree(target / recipe_folder.name, ignore_errors=True)
            shutil.copytree(recipe_folder, target / recipe_folder.name)
    shutil.rmtree(SCRATCH)


def main() -> int:
    """Record or restart; returns the exit code."""
    verb, *words = sys.argv[1:]
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    if verb == "record":
        record(spark, words, "spark-" + ".".join(map(str, RELEASE)))
        return 0
    answer, seconds, *folders = words
    for folder in folders:
        outcome = run(spark, RECIPES[Path(folder).name], Path(folder), 1, float(seconds))
        with Path(answer).open("a", encoding="utf-8") as answers:
            answers.write(json.dumps([folder, *outcome]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
