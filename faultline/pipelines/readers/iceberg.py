"""Reads an Iceberg table on a disk, of a Hadoop catalog: the rows of its newest snapshot."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.table import StaticTable

from faultline.pipelines.spec import Output
from faultline.verdict.model import Unknown
from faultline.verdict.store import Store

_HINT = "metadata/version-hint.text"
"""Number of the newest version. org.apache.iceberg.hadoop.HadoopTableOperations writes it after each commit."""


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of the rows of the newest snapshot. Raises Unknown."""
    try:
        version = _version(output)
        table = StaticTable.from_metadata(f"{output.path}/metadata/v{version}.metadata.json")
        store.connection.register("iceberg_rows", table.scan().to_arrow())
    except (OSError, ValueError) as error:
        raise Unknown(f"the Iceberg table {output.path} cannot be read: {str(error).splitlines()[0]}") from None
    store.execute("CREATE OR REPLACE TABLE output AS SELECT * FROM iceberg_rows")
    store.connection.unregister("iceberg_rows")
    return [f"version {version} of the Iceberg table"]


def _version(output: Output) -> str:
    return Path(output.path, _HINT).read_text(encoding="utf-8").strip()


def mark(output: Output) -> object:
    """Return the rows of the newest snapshot; the table has versions without one."""
    try:
        table = StaticTable.from_metadata(f"{output.path}/metadata/v{_version(output)}.metadata.json")
    except (OSError, ValueError):
        return None
    snapshot = table.current_snapshot()
    rows = snapshot.summary["total-records"] if snapshot and snapshot.summary else "0"
    return rows if rows != "0" else None


def reach(output: Output) -> None:
    """Raise Unknown when the folder is there and is no table."""
    if Path(output.path).exists() and not Path(output.path, _HINT).exists():
        raise Unknown(f"{output.path} has no {_HINT}, so it is no Iceberg table of a Hadoop catalog")
