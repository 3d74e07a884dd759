"""Judges of rows, besides the verdict's outcome; see `faultline.faults.judge.Judge`."""

from __future__ import annotations

from faultline.faults.judge import Judge
from faultline.faults.judges.batches import Batches
from faultline.faults.judges.offsets import Offsets
from faultline.faults.judges.readers import Readers

EVERY: tuple[Judge, ...] = (Offsets(), Batches(), Readers())
"""For every row but the negative controls."""
