"""Checks each decision of the job, late or on time, against the clock of the visit's own partition.

A visit is late when the clock of its partition has passed its window (flink_job/java/faultline/visits/OnTime.java). So
each visit of table `passed` is late, and each other visit is on time. There are two exceptions:

Idle partitions
    The clock of a partition that was idle follows the other partitions. So a visit may be late before its own partition
    passes the window when another partition passes it, and when a pause lies between this visit and the partition's
    last visit on time of that window or of an earlier one. Later visits of these windows are late, too: a clock never
    goes back.
Shared clocks
    A job that starts with n partitions has n clocks; partition p of a topic that grows uses clock p modulo n. The
    records do not show in which order two such partitions were read, so a visit of theirs may be late as soon as any
    partition passes its window. A later run gives partition p a clock of its own, without what the shared one
    had passed. So visits of a partition that had no clock at the fewest clocks may also be on time after their window.
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
        ("keeps_clock", pa.bool_()),
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

# Visits that another partition's clock has made late: the first pause after the visits on time comes before them.
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
WHERE shares OR pause <= kafka_offset
"""

# Late visits that nothing makes late are put back into their windows; visits that must be late are taken out.
_SET_ASIDE = """
CREATE OR REPLACE TABLE set_aside AS
SELECT kafka_partition, kafka_offset FROM called_late WHERE is_past
UNION
SELECT kafka_partition, kafka_offset FROM late_by_others
UNION
SELECT kafka_partition, kafka_offset FROM passed JOIN decided USING (kafka_partition)
WHERE keeps_clock AND kafka_offset < position
"""

_NOT_LATE = """
UPDATE late_fate SET fault = 'not late' WHERE fault IS NULL AND NOT EXISTS (
    SELECT 1 FROM set_aside WHERE kafka_partition = source_partition AND kafka_offset = source_offset)
"""


@dataclass(frozen=True)
class LateCounts:
    """Visits that are late by the clock of their own partition, and those that may be late by another one's."""

    proven: int
    possible: int


def explain_late(
    store: Store, clocks: list[PartitionClock], shared: int, fewest: int, positions: dict[int, int]
) -> LateCounts:
    """Create `set_aside` (visits that belong on the late topic) and set the fault of late copies that must not be late.

    `shared`: the job's number of clocks now; `fewest`: the fewest that it had in a run. `positions`: up to where the
    job has decided, per partition. Needs tables `visits`, `passed` and `late_fate`; also creates `decided`.
    """
    store.create("decided", _DECIDED)
    store.append("decided", _decided(clocks, shared, fewest, positions))
    store.create("pauses", _PAUSES)
    store.append("pauses", _pauses(clocks))
    for statement in (_CALLED_LATE, _LATE_BY_OTHERS, _SET_ASIDE, _NOT_LATE):
        store.execute(statement)
    return LateCounts(
        *store.numbers("SELECT (SELECT count(*) FROM called_late WHERE is_past), (SELECT count(*) FROM late_by_others)")
    )


def _decided(clocks: list[PartitionClock], shared: int, fewest: int, positions: dict[int, int]) -> pa.Table:
    """Return for each partition what the rule needs.

    `position`: up to where the job has decided. `free_from`: the first offset that another partition's clock may make
    late. `shares`: it had the same clock as another one. `others_pass`: the last window that another partition passes.
    `keeps_clock`: its clock is in all checkpoints, so that visits after their window are late.
    """
    sharers = Counter(clock.partition % fewest for clock in clocks)
    rows = []
    for clock in clocks:
        shares = sharers[clock.partition % fewest] > 1
        others = [other.ends[-1] for other in clocks if other is not clock and other.ends]
        pause = clock.pauses[0] if others and clock.pauses else _NEVER
        keeps_clock = clock.partition < fewest or fewest == shared
        rows.append(
            (
                clock.partition,
                positions.get(clock.partition, 0),
                0 if shares else pause,
                shares,
                max(others, default=0),
                keeps_clock,
            )
        )
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=_DECIDED)


def _pauses(clocks: list[PartitionClock]) -> pa.Table:
    pairs = [(clock.partition, pause) for clock in clocks for pause in clock.pauses]
    return pa.table([[p for p, _ in pairs], [pause for _, pause in pairs]], schema=_PAUSES)
