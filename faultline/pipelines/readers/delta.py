"""Reads a Delta table on a disk: the rows of its newest version."""

from __future__ import annotations

import deltalake
import duckdb
from deltalake.exceptions import DeltaError, TableNotFoundError

from faultline.command import first_line
from faultline.pipelines.spec import Output
from faultline.verdict.model import Unknown
from faultline.verdict.store import Store


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of the files that the newest version names. Raises Unknown."""
    try:
        table = deltalake.DeltaTable(output.path)
        store.connection.register("delta_rows", table.to_pyarrow_dataset())
        store.execute("CREATE OR REPLACE TABLE output AS SELECT * FROM delta_rows")
        store.connection.unregister("delta_rows")
    except (DeltaError, OSError, duckdb.Error) as error:
        raise _unreadable(output, error) from None
    return [f"version {table.version()} of the Delta table"]


def mark(output: Output) -> object:
    """Return the newest version."""
    try:
        return deltalake.DeltaTable(output.path, without_files=True).version()
    except (DeltaError, OSError):
        return None


def reach(output: Output) -> None:
    """Raise Unknown when the table is there and cannot be opened."""
    try:
        deltalake.DeltaTable(output.path, without_files=True)
    except TableNotFoundError:
        return
    except (DeltaError, OSError) as error:
        raise _unreadable(output, error) from None


def _unreadable(output: Output, error: Exception) -> Unknown:
    return Unknown(f"the Delta table {output.path} cannot be read: {first_line(error)}")
