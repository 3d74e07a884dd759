"""Reads an Iceberg table on a disk, of a Hadoop catalog: the rows of its newest snapshot."""

from __future__ import annotations

import re
from pathlib import Path

from pyiceberg.table import StaticTable

from faultline.command import first_line
from faultline.pipelines.spec import Output
from faultline.verdict.model import Unknown
from faultline.verdict.store import Store

_VERSION = re.compile(r"v([0-9]+)\.metadata\.json")
"""A version of the table. The file version-hint.text is written after a commit, and may be behind or missing."""


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of the rows of the newest snapshot. Raises Unknown."""
    try:
        version = _version(output)
        table = StaticTable.from_metadata(f"{output.path}/metadata/v{version}.metadata.json")
        store.connection.register("iceberg_rows", table.scan().to_arrow())
    except (OSError, ValueError) as error:
        raise Unknown(f"the Iceberg table {output.path} cannot be read: {first_line(error)}") from None
    store.execute("CREATE OR REPLACE TABLE output AS SELECT * FROM iceberg_rows")
    store.connection.unregister("iceberg_rows")
    return [f"version {version} of the Iceberg table"]


def _version(output: Output) -> int:
    """Return the number of the newest version: the files of versions count, as in HadoopTableOperations.refresh."""
    names = (_VERSION.fullmatch(each.name) for each in Path(output.path, "metadata").iterdir())
    return max(int(found[1]) for found in names if found)


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
    if Path(output.path).exists():
        try:
            _version(output)
        except (OSError, ValueError):
            raise Unknown(
                f"{output.path} has no metadata/vN.metadata.json, so it is no Iceberg table of a Hadoop catalog"
            ) from None
