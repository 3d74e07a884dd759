"""The tables of one judgement, in DuckDB: above its memory limit it spills to disk, so any topic can be judged."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from faultline.verdict.model import Unknown

MEMORY_LIMIT = "320MB"
"""DuckDB's share of the process; readers, Arrow and Python use about the same amount."""


class Store:
    """A database and its temporary folder."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.connection = connection
        self.folder = folder

    def create(self, table: str, schema: pa.Schema) -> None:
        """Create an empty table with the columns of an Arrow schema."""
        self.connection.register("arrow_batch", schema.empty_table())
        self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM arrow_batch")
        self.connection.unregister("arrow_batch")

    def append(self, table: str, rows: pa.Table) -> None:
        """Add the rows of an Arrow table with the same columns."""
        self.connection.register("arrow_batch", rows)
        self.connection.execute(f"INSERT INTO {table} SELECT * FROM arrow_batch")
        self.connection.unregister("arrow_batch")

    def execute(self, query: str, **parameters: object) -> None:
        """Run a statement with named parameters."""
        self.connection.execute(query, parameters or None)

    def rows(self, query: str, **parameters: object) -> list[tuple[object, ...]]:
        """Run a query and return all its rows; for small results only."""
        return self.connection.execute(query, parameters or None).fetchall()

    def arrow(self, query: str, **parameters: object) -> pa.Table:
        """Run a query and return its rows as an Arrow table."""
        return self.connection.sql(query, params=parameters or None).to_arrow_table()

    def stream(self, query: str, **parameters: object) -> Iterator[tuple[object, ...]]:
        """Run a query and yield its rows one by one; other queries may run meanwhile."""
        cursor = self.connection.cursor()
        try:
            cursor.execute(query, parameters or None)
            while found := cursor.fetchmany(1_000):
                yield from found
        finally:
            cursor.close()

    def numbers(self, query: str, **parameters: object) -> tuple[int, ...]:
        """Run a query of one row of sums and counts; an empty sum is 0."""
        (row,) = self.rows(query, **parameters)
        return tuple(int(str(value or 0)) for value in row)


# Its own process: it removes the folder also when this one is killed. Readers may write a last file meanwhile.
_JANITOR = """
import os, shutil, sys, tempfile, time
folder = tempfile.mkdtemp(prefix="verdict-")
print(folder, flush=True)
sys.stdin.read()
while os.path.exists(folder):
    shutil.rmtree(folder, ignore_errors=True)
    time.sleep(0.01)
"""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder below TMPDIR that is gone once this process has ended, however it ends. Raises Unknown."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _JANITOR],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as janitor:  # fmt: skip
        assert janitor.stdin is not None
        assert janitor.stdout is not None
        name = janitor.stdout.readline().removesuffix("\n")
        if not name:
            raise Unknown(f"no temporary folder can be made in {tempfile.gettempdir()}; set TMPDIR to a folder for it")
        try:
            yield Path(name)
        finally:
            janitor.stdin.close()
            janitor.wait()


@contextlib.contextmanager
def open_store(*, in_memory: bool = False) -> Iterator[Store]:
    """Open a database in a temporary folder (TMPDIR), both removed at the end; `in_memory` for a small one."""
    with temporary_folder() as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": "false",  # rows contain their place; preserving order costs memory
        }
        database = ":memory:" if in_memory else str(folder / "verdict.duckdb")
        with duckdb.connect(database, config=config) as connection:
            # Else times with a zone would be those of the machine's zone.
            connection.execute("SET TimeZone = 'UTC'")
            # It would be drawn on stdout, which is for the verdict.
            connection.execute("SET enable_progress_bar = false")
            if in_memory:
                # Tables this small are not worth a second thread.
                connection.execute("SET threads = 1")
            yield Store(connection, folder)
