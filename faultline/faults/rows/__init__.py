"""The rows of the matrix, as data: what is broken and repaired, what is promised, and why that can be promised.

A row that expects duplicates or losses passes only with the number that the checkpoint predicts.
"""

from __future__ import annotations

from faultline.faults.model import Row
from faultline.faults.rows import checkpoints, cluster, flink, kafka, network, source, spark, together, whole_stack
from faultline.faults.rows.controls import CONTROLS

GROUPS = {
    "Flink": flink.ROWS,
    "Flink's checkpoints": checkpoints.ROWS,
    "Kafka": kafka.ROWS,
    "The network": network.ROWS,
    "The synchronizer": spark.ROWS,
    "The source": source.ROWS,
    "Two at once": together.ROWS,
    "The whole stack": whole_stack.ROWS,
    "A small cluster": cluster.ROWS,
}
"""The rows by what breaks, with a title."""

ROWS = {row.name: row for rows in GROUPS.values() for row in rows}

CONTROL_ROWS: dict[str, tuple[Row, ...]] = {
    control.name: tuple(control.under(ROWS[name]) for name in control.rows) for control in CONTROLS
}
"""Rows of each negative control."""
