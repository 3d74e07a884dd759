"""What rows are judged by, besides the verdict's outcome; see `faults.judge.Judge`."""

from __future__ import annotations

from faults.judge import Judge
from faults.judges.batches import Batches
from faults.judges.offsets import Offsets
from faults.judges.readers import Readers

EVERY: tuple[Judge, ...] = (Offsets(), Batches(), Readers())
"""For every row but the negative controls."""
