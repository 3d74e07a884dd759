"""The windowing job as plain Flink SQL: format json, Flink's own watermarks, one sink; late visits are dropped.

A baseline for benchmarks. It writes windows as the classic job does, so its output can be judged in the same way.
"""

from __future__ import annotations

from pyflink.table import StreamTableEnvironment

from faultline.formats.jobs import EXACTLY_ONCE
from faultline.settings import Settings
from flink_job import tables
from flink_job.execution import execute, new_environment
from flink_job.guarantees import with_clause


def main() -> None:
    """Build the job and submit it."""
    settings = Settings()
    environment = new_environment(settings, EXACTLY_ONCE)
    table_env = StreamTableEnvironment.create(environment)
    source = {
        "connector": "kafka",
        "topic": settings.text("VISITS_TOPIC"),
        "properties.bootstrap.servers": settings.bootstrap,
        "properties.group.id": settings.text("FLINK_GROUP_ID"),
        "properties.isolation.level": "read_committed",
        "scan.startup.mode": "earliest-offset",
        "format": "json",
        "json.ignore-parse-errors": "true",
        "json.timestamp-format.standard": "ISO-8601",
    }
    table_env.execute_sql(f"""CREATE TEMPORARY TABLE visits (
  visit_id STRING,
  event_time TIMESTAMP_LTZ(3),
  WATERMARK FOR event_time AS event_time - INTERVAL '{settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")}' SECOND
) WITH (
  {with_clause(source)}
)""")
    table_env.execute_sql(tables.visit_windows(settings, EXACTLY_ONCE))

    def iso(column: str) -> str:
        return f"DATE_FORMAT({column}, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''')"

    size = settings.number("FLINK_WINDOW_SECONDS")
    inserts = table_env.create_statement_set()
    inserts.add_insert_sql(f"""INSERT INTO visit_windows
SELECT visit_id, {iso("window_start")}, {iso("window_end")}, visits, {iso("first_time")}, {iso("last_time")},
  CAST(window_end - INTERVAL '0.001' SECOND AS TIMESTAMP_LTZ(3))
FROM (
  SELECT visit_id, window_start, window_end, COUNT(*) AS visits,
    MIN(event_time) AS first_time, MAX(event_time) AS last_time
  FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(event_time), INTERVAL '{size}' SECONDS))
  WHERE visit_id IS NOT NULL
  GROUP BY visit_id, window_start, window_end)""")
    inserts.attach_as_datastream()
    execute(environment, settings, EXACTLY_ONCE)


if __name__ == "__main__":
    main()
