"""Flink's own SQL function `savepoint_metadata` on a checkpoint, as a line of JSON. Flink environment.

Usage: HADOOP_CLASSPATH=<flink-state-processor-api jar> savepoint_metadata.py PATH...
"""

from __future__ import annotations

import json
import sys

from pyflink.table import EnvironmentSettings, TableEnvironment


def main() -> None:
    """Print `{path: [{column: value}]}`."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql("LOAD MODULE state")
    found = {}
    for path in sys.argv[1:]:
        result = tables.execute_sql(f"SELECT * FROM savepoint_metadata('{path}')")
        columns = result.get_table_schema().get_field_names()
        with result.collect() as rows:
            found[path] = [dict(zip(columns, row, strict=True)) for row in rows]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
