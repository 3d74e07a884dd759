"""Visits counted in event-time tumbling windows per visit_id; late and unparsable visits are kept apart.

    visits ─ read and parse ─┬─ on time ─ count per visit_id and window ─ visit_windows
                             ├─ late ────────────────────────────────── visits_late
                             └─ not a visit ─────────────────────────── visits_rejected

Run by `flink run --detached --python flink_job/stateful_flink_consumer.py`; `python -m flink_job.submit` does that.
Every record is read, parsed, counted and written in the JVM: this program only defines the job and ends once it is
submitted.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment, Table

from faultline.formats.jobs import MODES
from faultline.formats.visit import (
    LATE_REASON,
    REASON_HEADER,
    REFUSAL_REASONS,
    SOURCE_OFFSET_HEADER,
    SOURCE_PARTITION_HEADER,
)
from faultline.settings import Settings
from flink_job import java_classes, tables
from flink_job.execution import execute, new_environment
from flink_job.names import name_operators
from flink_job.on_time import decide

Counted = Callable[[StreamTableEnvironment], Table]
"""Makes the table of the visits that are counted from the view `decided`, as on_time() does."""
Build = Callable[[Settings, str, Path], StreamExecutionEnvironment]
"""Builds a job from the settings, the mode, and the jar of the Java classes."""

RECORD = "record_key, record_value, source_partition, source_offset, source_timestamp"


def on_time() -> str:
    """The visits that are counted, with the columns that this needs; `record_value` has their other fields."""
    return """SELECT visit_id, event_time, visited_at
FROM decided WHERE refused = 0 AND NOT is_late"""


def windows(window_seconds: int) -> str:
    """One row per visit_id and window, written when the watermark passes the window's end."""
    return f"""INSERT INTO visit_windows
SELECT visit_id, {iso("window_start")}, {iso("window_end")},
  visits, {iso_ms("first_time")}, {iso_ms("last_time")},
  CAST(window_end - INTERVAL '0.001' SECOND AS TIMESTAMP_LTZ(3))
FROM (
  SELECT visit_id, window_start, window_end,
    COUNT(*) AS visits,
    MIN(event_time) AS first_time,
    MAX(event_time) AS last_time
  FROM TABLE(TUMBLE(TABLE on_time, DESCRIPTOR(visited_at), INTERVAL '{window_seconds}' SECONDS))
  GROUP BY visit_id, window_start, window_end)"""


def late() -> str:
    """The visits whose window was already over, unchanged."""
    return f"""INSERT INTO visits_late
SELECT record_key, record_value, source_timestamp, {headers(f"'{LATE_REASON}'")}
FROM decided WHERE is_late"""


def rejected() -> str:
    """The records that are not visits, unchanged."""
    reasons = ", ".join(f"'{reason}'" for reason in REFUSAL_REASONS)
    return f"""INSERT INTO visits_rejected
SELECT record_key, record_value, source_timestamp, {headers(f"ELT(refused, {reasons})")}
FROM decided WHERE refused > 0"""


def headers(reason: str) -> str:
    """Expression of the headers that name the record of `visits` and the reason why it was refused."""
    return f"""MAP['{SOURCE_PARTITION_HEADER}', ENCODE(CAST(source_partition AS STRING), 'UTF-8'),
    '{SOURCE_OFFSET_HEADER}', ENCODE(CAST(source_offset AS STRING), 'UTF-8'),
    '{REASON_HEADER}', ENCODE({reason}, 'UTF-8')]"""


def iso(timestamp: str) -> str:
    """Expression that formats a TIMESTAMP(3) like faultline.formats.visit.iso_time: `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return f"REPLACE(CAST({timestamp} AS STRING), ' ', 'T') || 'Z'"


def iso_ms(milliseconds: str) -> str:
    """The same for milliseconds since the epoch."""
    return iso(f"CAST(TO_TIMESTAMP_LTZ({milliseconds}, 3) AS TIMESTAMP(3))")


def begin(settings: Settings, mode: str, jar: Path) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    """Create the environment, with the tables and the view `decided`. `jar` has the job's Java classes."""
    environment = new_environment(settings, mode)
    environment.add_jars(jar.as_uri())
    table_env = StreamTableEnvironment.create(environment)
    table_env.execute_sql(tables.visits(settings))
    table_env.execute_sql(tables.visit_windows(settings, mode))
    table_env.execute_sql(tables.refused(settings, "visits_late", "VISITS_LATE_TOPIC", mode))
    table_env.execute_sql(tables.refused(settings, "visits_rejected", "VISITS_REJECTED_TOPIC", mode))

    read = table_env.sql_query(f"SELECT visit_id, event_time, refused, {RECORD} FROM visits")
    table_env.create_temporary_view("decided", decide(table_env, read, settings))
    return environment, table_env


def describe(settings: Settings, mode: str, jar: Path, counted: Counted | None = None) -> StreamExecutionEnvironment:
    """Build the job; the returned environment executes it. `jar` has the job's Java classes."""
    environment, table_env = begin(settings, mode, jar)
    table_env.create_temporary_view("on_time", counted(table_env) if counted else table_env.sql_query(on_time()))
    inserts = table_env.create_statement_set()
    inserts.add_insert_sql(windows(settings.number("FLINK_WINDOW_SECONDS")))
    inserts.add_insert_sql(late())
    inserts.add_insert_sql(rejected())
    inserts.attach_as_datastream()
    name_operators(environment)
    return environment


def run(settings: Settings, mode: str, build: Build = describe) -> None:
    """Compile the job's Java classes, build the job and submit it."""
    with tempfile.TemporaryDirectory(prefix="flink-job-classes-") as folder:
        jar = java_classes.compile_into(Path(folder))
        execute(build(settings, mode, jar), settings, mode)


def main() -> None:
    """Read the command line and submit the job to the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, default=None, help="default: FLINK_MODE in .env")
    settings = Settings()
    run(settings, parser.parse_args().mode or settings.text("FLINK_MODE"))


if __name__ == "__main__":
    main()
