"""The tables of one judgement, in DuckDB: past its memory limit it spills to disk, so any topic can be judged."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa

MEMORY_LIMIT = "320MB"
"""DuckDB's share of the process; readers, Arrow and Python take about as much again."""

_BATCH_ROWS = 20_000

_PLACE = [("kafka_partition", pa.int32()), ("kafka_offset", pa.int64())]
_ROUTED = [*_PLACE, ("source_partition", pa.int32()), ("source_offset", pa.int64()), ("digest", pa.binary())]
SCHEMAS = {
    # Spark: the line each record of the topic must become, and the lines found.
    "sent": pa.schema([*_PLACE, ("digest", pa.binary())]),
    "lines": pa.schema(
        [
            ("file", pa.int32()),
            ("line", pa.int64()),  # from 1
            ("position", pa.int64()),  # bytes before the line
            ("digest", pa.binary()),
            ("leftover", pa.bool_()),
        ]
    ),
    # Flink: the records of the topic (visit_id null: unparsable), and those of the three output topics.
    # visit_id is UTF-8 as bytes: JSON can escape half a surrogate pair, which no text column takes.
    "visits": pa.schema(
        [
            *_PLACE,
            ("visit_id", pa.binary()),
            ("event_time", pa.int64()),
            ("window_start", pa.int64()),
            ("digest", pa.binary()),
        ]
    ),
    "windows": pa.schema(
        [
            *_PLACE,
            ("visit_id", pa.binary()),
            ("window_start", pa.int64()),
            ("visit_count", pa.int64()),
            ("first_event_time", pa.int64()),
            ("last_event_time", pa.int64()),
        ]
    ),
    "malformed": pa.schema([*_PLACE, ("fault", pa.string())]),
    "late": pa.schema(_ROUTED),
    "rejected": pa.schema(_ROUTED),
}
"""Columns of each table. Times are milliseconds since the epoch; `digest` stands for a record's bytes."""


class Appender:
    """Collects rows of one table and hands them to DuckDB as Arrow batches; use it as a context manager."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        self._table = table
        self._schema = SCHEMAS[table]
        self._columns: list[list[object]] = [[] for _ in self._schema]

    def add(self, *row: object) -> None:
        """Add one row: a value a column, in the order of the schema."""
        self.extend(*([value] for value in row))

    def extend(self, *columns: Iterable[object]) -> None:
        """Add rows column by column, all of one length: several times faster than row by row."""
        for held, values in zip(self._columns, columns, strict=True):
            held.extend(values)
        if len(self._columns[0]) >= _BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand the collected rows over."""
        if not self._columns[0]:
            return
        arrays = [pa.array(values, field.type) for values, field in zip(self._columns, self._schema, strict=True)]
        for values in self._columns:
            values.clear()
        self._connection.register("arrow_batch", pa.record_batch(arrays, schema=self._schema))
        self._connection.execute(f"INSERT INTO {self._table} SELECT * FROM arrow_batch")
        self._connection.unregister("arrow_batch")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every table of SCHEMAS, empty."""
    for table, schema in SCHEMAS.items():
        connection.register("arrow_batch", schema.empty_table())
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM arrow_batch")
        connection.unregister("arrow_batch")


@contextlib.contextmanager
def open_store() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database of its own in a temporary folder (TMPDIR), removed at the end, with the tables created."""
    with tempfile.TemporaryDirectory(prefix="verdict-") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(Path(folder) / "spill"),
            "preserve_insertion_order": "false",  # rows name their place themselves; keeping order costs memory
        }
        with duckdb.connect(str(Path(folder) / "verdict.duckdb"), config=config) as connection:
            # It would be drawn on stdout, which belongs to the verdict.
            connection.execute("SET enable_progress_bar = false")
            create_tables(connection)
            yield connection


def rows(connection: duckdb.DuckDBPyConnection, query: str, *parameters: object) -> list[tuple[object, ...]]:
    """Run a query and give its rows; for small results only."""
    return connection.execute(query, list(parameters)).fetchall()


def numbers(connection: duckdb.DuckDBPyConnection, query: str, *parameters: object) -> tuple[int, ...]:
    """Run a query of one row of sums and counts; an empty sum is 0."""
    row = connection.execute(query, list(parameters)).fetchone()
    return tuple(int(value or 0) for value in row or ())
