"""The job's decisions, late or on time, taken from the tables and checked against every order of reading."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from faultline.verdict.flink.clock import NEVER, PartitionClock
from faultline.verdict.flink.order import Decisions, Explanation, Group, Needs, alone, explain
from faultline.verdict.flink.proof import proven
from faultline.verdict.store import Store

_DECIDED = pa.schema([("kafka_partition", pa.int32()), ("position", pa.int64()), ("free_from", pa.int64())])
_GROUPS = pa.schema([("kafka_partition", pa.int32()), ("window_end", pa.int64())])

# One row for each visit that the job called late, even if its copy has another fault. A visit whose own partition is
# not past its window cannot be late, unless that partition paused before or shares its clock with another.
_CALLED_LATE = """
CREATE OR REPLACE TABLE called_late AS
SELECT kafka_partition, kafka_offset, window_end
FROM (
    SELECT DISTINCT source_partition AS kafka_partition, source_offset AS kafka_offset, window_end
    FROM late_fate WHERE visit IS NOT NULL
) AS called
JOIN decided USING (kafka_partition)
LEFT JOIN (SELECT kafka_partition, kafka_offset, true AS is_past FROM passed) USING (kafka_partition, kafka_offset)
WHERE is_past OR kafka_offset >= free_from
"""

# Visits that the job has decided, so on time when they are not called late.
_ON_TIME = """
SELECT kafka_partition, window_end, max(kafka_offset)
FROM {table} ANTI JOIN called_late USING (kafka_partition, kafka_offset)
JOIN decided USING (kafka_partition)
WHERE window_end IS NOT NULL AND kafka_offset < position
GROUP BY kafka_partition, window_end
"""

# Late visits that no order makes late are put back into their windows; visits that must be late are taken out.
_SET_ASIDE = """
CREATE OR REPLACE TABLE set_aside AS
SELECT kafka_partition, kafka_offset FROM called_late ANTI JOIN not_late USING (kafka_partition, window_end)
UNION
SELECT kafka_partition, kafka_offset
FROM passed JOIN decided USING (kafka_partition) SEMI JOIN not_on_time USING (kafka_partition, window_end)
WHERE kafka_offset < position
"""


@dataclass(frozen=True)
class LateCounts:
    """Visits on the late topic that an order of reading explains: late in every order, or in some."""

    proven: int
    possible: int


def explain_late(
    store: Store, clocks: list[PartitionClock], shared: tuple[int, int], positions: dict[int, int]
) -> LateCounts:
    """Create `set_aside` (visits that belong on the late topic) and set the fault of late copies without explanation.

    `shared`: the numbers of clocks now, and at the fewest. `positions`: up to where the job has decided, per partition.
    Needs tables `visits`, `passed` and `late_fate`; also creates `decided`.
    """
    _fill_decided(store, clocks, shared[1], positions)
    store.execute(_CALLED_LATE)
    late = _groups(store, "SELECT kafka_partition, window_end, min(kafka_offset) FROM called_late GROUP BY ALL")
    found, late_anyway = Explanation(), set[Group]()
    if late or store.numbers("SELECT count(*) FROM passed")[0]:
        passed = _groups(store, _ON_TIME.format(table="passed"))
        if not passed:
            late_anyway = _late_by_own_clock(clocks, late)
            late = {group: offset for group, offset in late.items() if group not in late_anyway}
        on_time = _groups(store, _ON_TIME.format(table="visits")) if late else {}
        decisions = Decisions(late, on_time, passed)
        needs = Needs(clocks, decisions, *shared)
        found = explain(needs, decisions)
        late_anyway |= proven(needs, decisions, found)
    _fill(store, "not_late", found.not_late)
    _fill(store, "not_on_time", found.not_on_time)
    _fill(store, "late_anyway", late_anyway)
    store.execute(_SET_ASIDE)
    store.execute(
        """UPDATE late_fate SET fault = 'not late' WHERE fault IS NULL AND NOT EXISTS (
               FROM set_aside WHERE kafka_partition = source_partition AND kafka_offset = source_offset)"""
    )
    # Once the first late visit of a group is late, the others are late in every order.
    certain, explained = store.numbers(
        """SELECT sum(CASE WHEN in_every_order THEN visits ELSE visits - 1 END), sum(visits) FROM (
               SELECT kafka_partition, window_end, count(*) AS visits
               FROM called_late SEMI JOIN set_aside USING (kafka_partition, kafka_offset) GROUP BY ALL
           ) LEFT JOIN (SELECT *, true AS in_every_order FROM late_anyway) USING (kafka_partition, window_end)"""
    )
    return LateCounts(certain, explained - certain)


def _late_by_own_clock(clocks: list[PartitionClock], late: dict[Group, int]) -> set[Group]:
    """Return the groups whose first late visit comes when its own partition has passed the window.

    Call it when no visit of that kind was on time: so the job decides by these clocks, whatever the others show.
    """
    by_partition = {clock.partition: clock for clock in clocks}
    return {(p, end) for (p, end), offset in late.items() if by_partition[p].position_of(end) <= offset}


def _fill_decided(store: Store, clocks: list[PartitionClock], shared: int, positions: dict[int, int]) -> None:
    """Create `decided`: each partition's position, and from where a visit may be late without its own clock."""
    own = alone((clock.partition for clock in clocks), shared)
    rows = []
    for clock in clocks:
        free_from = NEVER if clock.partition in own else 0
        if free_from and len(clocks) > 1 and clock.pauses:
            free_from = clock.pauses[0]
        rows.append((clock.partition, positions.get(clock.partition, 0), free_from))
    store.create("decided", _DECIDED)
    store.append("decided", pa.table([list(column) for column in zip(*rows, strict=True)], schema=_DECIDED))


def _groups(store: Store, query: str) -> dict[Group, int]:
    return {(int(str(partition)), int(str(end))): int(str(offset)) for partition, end, offset in store.rows(query)}


def _fill(store: Store, table: str, groups: set[Group]) -> None:
    store.create(table, _GROUPS)
    if groups:
        partitions, ends = zip(*groups, strict=True)
        store.append(table, pa.table([pa.array(partitions, pa.int32()), pa.array(ends)], schema=_GROUPS))
