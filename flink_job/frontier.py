"""SQL of the job's clock: the event time up to which windows are closed, and so which visit is late.

A Flink watermark is not part of a checkpoint, but the window operator saves the one it saw. After a restore
it silently drops what is late by that saved watermark, while the operators before it start again
without a watermark and treat those visits as on time. Here the clock is a column instead, computed
from the visits by aggregations whose state is in the checkpoint. The router decides by that column, and the
window operator's watermark is derived from the same column; the two cannot disagree, also after a restore.

For each row, in the order in which the job read them (each step below is a running aggregate over all rows):
1. `read_seconds`: the seconds of wall clock in which at least one visit was read, so it does not advance
   while the job, the broker or the network is stopped;
2. `newest_<p>`: the largest event time of partition p; `read_<p>`: `read_seconds` at p's last visit;
3. a partition is idle when it had no visit for FLINK_IDLE_PARTITION_SECONDS of `read_seconds`;
4. `closed`: the minimum `newest_<p>` of the partitions that are not idle, minus the out-of-orderness bound,
   rounded down to the end of a window; it never decreases.
A visit is late when the window it belongs to ends at `closed` or before. The watermark is `closed` - 1 ms.
"""

from __future__ import annotations

from contract.settings import Settings

_OVER = "OVER (ORDER BY read_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
_FAR_FUTURE = 9_000_000_000_000_000
"""Milliseconds after any event time: an idle partition does not hold back the minimum."""


def steps(settings: Settings, carried: str) -> list[str]:
    """The queries of the steps, each over `{rows}`, the result of the previous one; `carried` columns pass through."""
    partitions = settings.number("TOPIC_PARTITIONS")
    window = settings.number("FLINK_WINDOW_SECONDS") * 1000
    bound = settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000
    idle = settings.number("FLINK_IDLE_PARTITION_SECONDS")

    def per_partition(value: str, name: str) -> str:
        # A partition added to the topic later shares the clock of an earlier one.
        return ", ".join(
            f"MAX(CASE WHEN MOD(source_partition, {partitions}) = {p} THEN {value} END) {_OVER} AS {name}_{p}"
            for p in range(partitions)
        )

    newest = ", ".join(f"newest_{p}" for p in range(partitions))
    # LEAST of a NULL is NULL: a partition without a visit yet holds back the clock until it counts as idle.
    active = ", ".join(
        f"CASE WHEN read_seconds - COALESCE(read_{p}, 0) < {idle} THEN newest_{p} ELSE {_FAR_FUTURE} END"
        for p in range(partitions)
    )
    reached = f"(LEAST({active}, {_FAR_FUTURE}) - {bound})"
    return [
        f"SELECT {carried}, read_second, LAG(read_second) OVER (ORDER BY read_at) AS previous_second"
        f" FROM (SELECT {carried}, read_at, UNIX_TIMESTAMP() AS read_second FROM {{rows}})",
        f"SELECT {carried}, SUM(CASE WHEN read_second > previous_second THEN 1 ELSE 0 END) {_OVER} AS read_seconds,"
        f" {per_partition('event_time', 'newest')} FROM {{rows}}",
        f"SELECT {carried}, read_seconds, {newest}, {per_partition('read_seconds', 'read')} FROM {{rows}}",
        f"SELECT {carried}, MAX({reached} - MOD({reached}, {window})) {_OVER} AS closed FROM {{rows}}",
    ]
