"""Session settings for Delta Lake tables."""

from __future__ import annotations

DELTA_CONFIGURATION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Small tables: the usual 50 partitions of a table's log would be 50 tasks with nothing to do.
    "spark.databricks.delta.snapshotPartitions": "1",
}
