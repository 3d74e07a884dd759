"""Reads a table of Postgres, in one statement: so all rows are of one moment."""

from __future__ import annotations

import duckdb
import psycopg
from psycopg import sql

from faultline.pipelines.readers.files import CSV
from faultline.pipelines.spec import Output
from faultline.verdict.model import Unknown
from faultline.verdict.store import Store

_CONNECT_SECONDS = 10
_LINE_BYTES = 64 << 20


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of all columns of the table, as text. Raises Unknown."""
    file = store.folder / "postgres.csv"
    query = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT WITH (FORMAT csv, HEADER true)").format(_table(output))
    try:
        with _connect(output) as connection, connection.cursor().copy(query) as copy, file.open("wb") as target:
            target.writelines(copy)
        # In the form of COPY, NULL has no quotes, and an empty text has them.
        store.execute(
            "CREATE OR REPLACE TABLE output AS SELECT * FROM read_csv($file, header = true, all_varchar = true, "
            f"{CSV}, escape = '\"', max_line_size = {_LINE_BYTES})",
            file=str(file),
        )
    except (psycopg.Error, duckdb.Error) as error:
        raise Unknown(f"table {output.table} of Postgres cannot be read: {_said(error)}") from None
    finally:
        file.unlink(missing_ok=True)
    return []


def mark(output: Output) -> object:
    """Return the number of rows, and a sum that an update changes, too; a view has the number alone."""
    count, table = "SELECT count(*){} FROM {}", _table(output)
    try:
        with _connect(output) as connection:
            try:
                # Each version of a row has the transaction that wrote it.
                updates = sql.SQL(", sum(xmin::text::bigint)")
                found = connection.execute(sql.SQL(count).format(updates, table)).fetchone()
            except psycopg.errors.UndefinedColumn:
                found = connection.execute(sql.SQL(count).format(sql.SQL(""), table)).fetchone()
    except psycopg.Error:
        return None
    return found if found and found[0] else None


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


def _said(error: Exception) -> str:
    """Say what the error says in one line; of an address that cannot be parsed, nothing: it may have a password."""
    if type(error) is psycopg.ProgrammingError:
        return "output.url is no address of Postgres; write postgresql://USER@HOST:PORT/DATABASE"
    return " ".join(str(error).split())
