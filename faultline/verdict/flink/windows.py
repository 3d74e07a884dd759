"""Recomputes windows from the source and compares them with the observed ones, one bucket of visits at a time."""

from __future__ import annotations

from dataclasses import dataclass

from faultline.verdict.store import Store

BUCKET_RECORDS = 2_000_000
"""Visits and windows per bucket: as many as fit into the store's memory."""

# A visit that the job set aside, or had to, is in no window. `place` finds its visit_id again. The job may
# still call `open_visits` of a window late, and the window is `undone` while these are all of its visits.
_EXPECTED = """
CREATE OR REPLACE TABLE expected AS
SELECT visit, window_end, bool_or(closing) AS closing, count(*) AS visit_count,
       min(event_time) AS first_event_time, max(event_time) AS last_event_time,
       min(kafka_partition::BIGINT << 48 | kafka_offset) AS place, {open_visits} AS open_visits, {undone} AS undone
FROM visits ANTI JOIN set_aside USING (kafka_partition, kafka_offset) {undecided}
WHERE visit IS NOT NULL AND {bucket}
GROUP BY visit, window_end
"""

_SEEN = """
CREATE OR REPLACE TABLE seen AS
SELECT windows.visit, windows.window_end, kafka_partition, kafka_offset, misplaced,
       expected.visit IS NULL AS alien, early,
       coalesce(NOT misplaced AND NOT early AND windows.visit_count = expected.visit_count
                AND windows.first_event_time = expected.first_event_time
                AND windows.last_event_time = expected.last_event_time, false) AS exact,
       coalesce(NOT misplaced AND NOT early AND windows.visit_count < expected.visit_count
                AND windows.visit_count >= expected.visit_count - open_visits
                AND windows.first_event_time >= expected.first_event_time
                AND windows.last_event_time <= expected.last_event_time, false) AS maybe
FROM (
    SELECT *, coalesce({misplaced}, true) AS misplaced, window_end > {passed} AS early
    FROM windows WHERE fault IS NULL AND {bucket}
) AS windows
LEFT JOIN expected USING (visit, window_end)
"""

_COUNTED = """
CREATE OR REPLACE TABLE counted AS
SELECT expected.*, coalesce(exact, 0) AS exact, coalesce(wrong, 0) AS wrong
FROM expected LEFT JOIN (
    SELECT visit, window_end, count(*) FILTER (exact OR maybe) AS exact,
           count(*) FILTER (NOT exact AND NOT maybe) AS wrong
    FROM seen WHERE NOT alien GROUP BY visit, window_end
) USING (visit, window_end)
"""

# Windows that occur once need no second check; the others are kept until it is known which are due.
_SUSPECT = "INSERT INTO suspect SELECT * EXCLUDE (open_visits) FROM counted WHERE exact <> 1 OR wrong > 0"

# First copies of right windows that come after a later window of the same visit.
_DISORDERED = """
INSERT INTO disordered
SELECT visit, window_end, kafka_partition, kafka_offset FROM (
    SELECT *, max(window_end) OVER (
        PARTITION BY visit, kafka_partition ORDER BY kafka_offset ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS latest
    FROM (
        SELECT visit, window_end, kafka_partition, min(kafka_offset) AS kafka_offset
        FROM seen WHERE exact GROUP BY visit, window_end, kafka_partition
    )
) WHERE window_end < latest
"""

_WRONG = """
INSERT INTO wrong SELECT visit, window_end, kafka_partition, kafka_offset, alien, misplaced, early FROM seen
WHERE NOT exact AND NOT maybe
"""

_TOTALS = """
SELECT count(*), sum(exact), sum(visit_count) FILTER (exact > 0),
       count(*) FILTER (closing AND exact > 0), sum(visit_count) FILTER (closing AND exact > 0),
       max(window_end) FILTER (exact > 0)
FROM counted
"""


@dataclass
class Totals:
    """Windows expected, right records, visits in windows that are written; closing ones among them; newest end."""

    windows: int = 0
    exact: int = 0
    visits: int = 0
    closing: int = 0
    closing_visits: int = 0
    newest: int = 0

    def add(self, bucket: Totals) -> None:
        """Add a bucket."""
        self.windows += bucket.windows
        self.exact += bucket.exact
        self.visits += bucket.visits
        self.closing += bucket.closing
        self.closing_visits += bucket.closing_visits
        self.newest = max(self.newest, bucket.newest)


def compare_windows(store: Store, misplaced: str, passed: int) -> Totals:
    """Create `suspect`, `wrong` and `disordered` from `visits`, `windows`, `set_aside` and `undecided`.

    `misplaced` is the SQL condition of a record that is not in its key's partition; `passed` the end of the last window
    that the clock of any partition passes in the whole source: no window that ends later can be written.
    """
    store.execute(
        """CREATE OR REPLACE TABLE suspect (
             visit UUID, window_end BIGINT, closing BOOLEAN, visit_count BIGINT, first_event_time BIGINT,
             last_event_time BIGINT, place BIGINT, undone BOOLEAN, exact BIGINT, wrong BIGINT)"""
    )
    place = "visit UUID, window_end BIGINT, kafka_partition INTEGER, kafka_offset BIGINT"
    store.execute(f"CREATE OR REPLACE TABLE disordered ({place})")
    store.execute(f"CREATE OR REPLACE TABLE wrong ({place}, alien BOOLEAN, misplaced BOOLEAN, early BOOLEAN)")
    records, open_visits = store.numbers(
        "SELECT (SELECT count(*) FROM visits) + (SELECT count(*) FROM windows), (SELECT count(*) FROM undecided)"
    )
    undecided = {"open_visits": "0", "undone": "false", "undecided": ""}
    if open_visits:
        undecided = {
            "open_visits": "count(*) FILTER (is_open)",
            "undone": "coalesce(bool_and(coalesce(is_open, false)), false)",
            "undecided": """LEFT JOIN (SELECT *, true AS is_open FROM undecided)
                            USING (kafka_partition, kafka_offset)""",
        }
    buckets = 1 + records // BUCKET_RECORDS
    totals = Totals()
    for number in range(buckets):
        bucket = "true" if buckets == 1 else f"hash(visit) % {buckets} = {number}"
        store.execute(_EXPECTED.format(bucket=bucket, **undecided))
        store.execute(_SEEN.format(bucket=bucket, misplaced=misplaced, passed=passed))
        store.execute(_COUNTED)
        for statement in (_SUSPECT, _DISORDERED, _WRONG):
            store.execute(statement)
        totals.add(Totals(*store.numbers(_TOTALS)))
    return totals
