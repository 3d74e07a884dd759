"""Checks each decision of the job, late or on time, against the clock of the visit's own partition.

A visit is late when the clock of its partition has passed its window (flink_job/java/faultline/visits/OnTime.java). So
each visit of table `passed` is late, and each other visit is on time. There are two exceptions:

Idle partitions
    The clock of a partition that was idle follows the other partitions. So a visit may be late before its own partition
    passes the window, when another partition passes it and a pause lies before the visit.
Shared clocks
    A job that starts with n partitions has n clocks; partition p of a topic that grows uses clock p modulo n, and goes
    on with it when a later run has more clocks. The records do not show in which order two such partitions were read,
    so a visit of theirs may be late as soon as another partition passes its window.

A clock never goes back. So a late visit of both kinds comes after all visits on time of its window and of earlier ones,
and the pause lies between.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from faultline.verdict.flink.clock import PartitionClock
from faultline.verdict.store import Store

_NEVER = 2**62
"""An offset after every other."""

_DECIDED = pa.schema(
    [
        ("kafka_partition", pa.int32()),
        ("position", pa.int64()),
        ("free_from", pa.int64()),
        ("shares", pa.bool_()),
        ("others_pass", pa.int64()),
    ]
)
_PAUSES = pa.schema([("kafka_partition", pa.int32()), ("pause", pa.int64())])

# One row for each visit that the job called late, even if its copy has another fault.
_CALLED_LATE = """
CREATE OR REPLACE TABLE called_late AS
SELECT kafka_partition, kafka_offset, window_end, coalesce(is_past, false) AS is_past
FROM (
    SELECT DISTINCT source_partition AS kafka_partition, source_offset AS kafka_offset, window_end
    FROM late_fate WHERE visit IS NOT NULL
) AS called
LEFT JOIN (SELECT kafka_partition, kafka_offset, true AS is_past FROM passed) USING (kafka_partition, kafka_offset)
"""

# Visits that another partition's clock has made late. `read`: the position after the visits on time.
_LATE_BY_OTHERS = """
CREATE OR REPLACE TABLE late_by_others AS
WITH on_time AS (
    SELECT kafka_partition, window_end,
           max(max(kafka_offset) + 1) OVER (PARTITION BY kafka_partition ORDER BY window_end) AS read
    FROM visits ANTI JOIN called_late USING (kafka_partition, kafka_offset)
    ANTI JOIN passed USING (kafka_partition, kafka_offset) JOIN decided USING (kafka_partition)
    WHERE window_end IS NOT NULL AND kafka_offset < position
    GROUP BY kafka_partition, window_end
), early AS (
    SELECT called_late.*, shares, coalesce(read, 0) AS read
    FROM called_late ASOF LEFT JOIN on_time
      ON called_late.kafka_partition = on_time.kafka_partition AND called_late.window_end >= on_time.window_end
    JOIN decided ON decided.kafka_partition = called_late.kafka_partition
    WHERE NOT is_past AND called_late.window_end <= others_pass
)
SELECT early.kafka_partition, kafka_offset
FROM early ASOF LEFT JOIN pauses ON early.kafka_partition = pauses.kafka_partition AND read <= pause
WHERE read <= kafka_offset AND (shares OR pause <= kafka_offset)
"""

# Late visits that nothing makes late are put back into their windows; visits that must be late are taken out.
_SET_ASIDE = """
CREATE OR REPLACE TABLE set_aside AS
SELECT kafka_partition, kafka_offset FROM called_late WHERE is_past
UNION ALL
SELECT kafka_partition, kafka_offset FROM late_by_others
UNION ALL
SELECT kafka_partition, kafka_offset
FROM passed ANTI JOIN called_late USING (kafka_partition, kafka_offset) JOIN decided USING (kafka_partition)
WHERE kafka_offset < position
"""

_NOT_LATE = """
UPDATE late_fate SET fault = 'not late' WHERE fault IS NULL AND NOT EXISTS (
    SELECT 1 FROM set_aside WHERE kafka_partition = source_partition AND kafka_offset = source_offset)
"""


@dataclass(frozen=True)
class LateCounts:
    """Visits that are late by the clock of their own partition, and those that are late by another one's."""

    own: int
    others: int


def explain_late(store: Store, clocks: list[PartitionClock], shared: int, positions: dict[int, int]) -> LateCounts:
    """Create `set_aside` (visits that belong on the late topic) and set the fault of late copies that must not be late.

    `shared`: the fewest clocks that the job had in a run. `positions`: up to where the job has decided, per partition.
    Needs tables `visits`, `passed` and `late_fate`; also creates `decided`.
    """
    store.create("decided", _DECIDED)
    store.append("decided", _decided(clocks, shared, positions))
    store.create("pauses", _PAUSES)
    for clock in clocks:
        pauses = pa.array(clock.pauses, pa.int64())
        store.append(
            "pauses", pa.table([pa.repeat(pa.scalar(clock.partition, pa.int32()), len(pauses)), pauses], schema=_PAUSES)
        )
    for statement in (_CALLED_LATE, _LATE_BY_OTHERS, _SET_ASIDE, _NOT_LATE):
        store.execute(statement)
    return LateCounts(
        *store.numbers("SELECT (SELECT count(*) FROM called_late WHERE is_past), (SELECT count(*) FROM late_by_others)")
    )


def _decided(clocks: list[PartitionClock], shared: int, positions: dict[int, int]) -> pa.Table:
    """Return for each partition what the rule needs.

    `position`: up to where the job has decided. `free_from`: the first offset that another partition's clock may make
    late. `shares`: it had the same clock as another one. `others_pass`: the last window that another partition passes.
    """
    sharers = Counter(clock.partition % shared for clock in clocks)
    rows = []
    for clock in clocks:
        shares = sharers[clock.partition % shared] > 1
        others = [other.ends[-1] for other in clocks if other is not clock and other.ends]
        pause = clock.pauses[0] if others and clock.pauses else _NEVER
        free_from = 0 if shares else pause
        rows.append((clock.partition, positions.get(clock.partition, 0), free_from, shares, max(others, default=0)))
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=_DECIDED)
