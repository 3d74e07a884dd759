"""The rows of the matrix, as data: what is broken and repaired, what is promised, and why that can be promised.

A row that expects duplicates or losses passes only with the number that the checkpoint predicts.
"""

from __future__ import annotations

from faults.model import Row
from faults.rows import checkpoints, flink, kafka, network, source, spark, together, whole_stack
from faults.rows.controls import CONTROLS

ROWS = {
    row.name: row
    for module in (flink, checkpoints, kafka, network, spark, source, together, whole_stack)
    for row in module.ROWS
}

CONTROL_ROWS: dict[str, tuple[Row, ...]] = {
    control.name: tuple(control.under(ROWS[name]) for name in control.rows) for control in CONTROLS
}
"""Rows of each negative control."""
