"""Reads a table of Postgres, in one statement: so all rows are of one moment."""

from __future__ import annotations

import psycopg
from psycopg import sql

from faultline.pipelines.spec import Output
from faultline.verdict.model import Unknown
from faultline.verdict.store import Store

_CONNECT_SECONDS = 10


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of all columns of the table, as text. Raises Unknown."""
    file = store.folder / "postgres.csv"
    query = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT WITH (FORMAT csv, HEADER true)").format(_table(output))
    try:
        with _connect(output) as connection, connection.cursor().copy(query) as copy, file.open("wb") as target:
            target.writelines(copy)
    except psycopg.Error as error:
        raise Unknown(f"table {output.table} of Postgres cannot be read: {_said(error)}") from None
    # In the form of COPY, NULL has no quotes, and an empty text has them.
    store.execute(
        "CREATE OR REPLACE TABLE output AS SELECT * FROM read_csv($file, header = true, all_varchar = true, "
        "delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false)",
        file=str(file),
    )
    file.unlink()
    return []


def mark(output: Output) -> object:
    """Return the number of rows."""
    try:
        with _connect(output) as connection:
            found = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(_table(output))).fetchone()
    except psycopg.Error:
        return None
    return found[0] or None if found else None


def reach(output: Output) -> None:
    """Raise Unknown when no connection can be made."""
    try:
        _connect(output).close()
    except psycopg.Error as error:
        raise Unknown(f"Postgres cannot be reached: {_said(error)}; is output.url right?") from None


def _connect(output: Output) -> psycopg.Connection:
    return psycopg.connect(output.url, connect_timeout=_CONNECT_SECONDS, autocommit=True)


def _table(output: Output) -> sql.Identifier:
    return sql.Identifier(*output.table.split("."))


def _said(error: psycopg.Error) -> str:
    """Say what the error says in one line; the address in it has no password."""
    return " ".join(str(error).split())
