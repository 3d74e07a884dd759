"""Visits counted in event-time tumbling windows per visit_id; late and unparsable visits are kept apart.

Run by `flink run -d -py flink_job/stateful_flink_consumer.py -pyfs <folder of contract and flink_job>`;
`python -m flink_job.submit` does that. Every record is read, parsed, counted and written in the JVM: this
program only defines the job and ends once it is submitted.
"""

from __future__ import annotations

import argparse
import secrets
from typing import Any

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import Schema, StreamTableEnvironment, Table

from contract.settings import Settings
from contract.visit import LATE_REASON, REASON_HEADER, SOURCE_OFFSET_HEADER, SOURCE_PARTITION_HEADER
from flink_job import frontier, parsing, tables
from flink_job.guarantees import MODES, job_configuration
from flink_job.run_file import leave_settings
from flink_job.topology import chain_clocks, set_uids

RECORD = "record_key, record_value, source_partition, source_offset, source_timestamp"
VISIT = f"visit_id, event_time, {RECORD}"


def computed_once(
    table_env: StreamTableEnvironment, table: Table, schema: Any = None, by_one_task: bool = False
) -> Table:
    """The same rows, computed once even if used several times: the planner does not merge across a DataStream.

    The rows stay Flink's internal RowData: nothing is converted. `schema` adds computed columns or a watermark.
    With `by_one_task` all rows go to one task, in the order in which they arrive.
    """
    jvm = get_gateway().jvm
    j_types = jvm.org.apache.flink.table.api.DataTypes
    j_columns = table._j_table.getResolvedSchema().getColumns()
    # Always nullable: otherwise the planner adds an operator that checks each row.
    j_row = j_types.ROW([j_types.FIELD(c.getName(), c.getDataType().nullable()) for c in j_columns]).notNull()
    j_type = jvm.org.apache.flink.table.types.utils.DataTypeUtils.toInternalDataType(j_row)
    j_stream = table_env._j_tenv.toDataStream(table._j_table, j_type)
    if by_one_task:
        j_stream = getattr(j_stream, "global")()  # a reserved word in Python
    if schema is None:
        return Table(table_env._j_tenv.fromDataStream(j_stream), table_env)
    return Table(table_env._j_tenv.fromDataStream(j_stream, schema._j_schema), table_env)


def parse(table_env: StreamTableEnvironment, end_mark: str) -> Table:
    """Return `visits` with `projection` and, for a visit, `visit_id` and `event_time` (else event_time is NULL)."""
    # From here on the value is BYTES: an operator passes these on unchanged and would copy a STRING.
    as_bytes = RECORD.replace("record_value", "CAST(record_value AS BYTES) AS record_value")
    projected = f"SELECT {as_bytes}, {parsing.projection(end_mark)} AS projection FROM visits"
    table_env.create_temporary_view("projected", computed_once(table_env, table_env.sql_query(projected)))
    cut = f"SELECT {RECORD}, projection, {parsing.pieces(end_mark)} FROM projected"
    # The clock needs one task for all visits. It starts here, so that two threads share the parsing.
    cut_table = computed_once(table_env, table_env.sql_query(cut), by_one_task=True)
    table_env.create_temporary_view("cut", cut_table)
    parsed = (
        f"SELECT {RECORD}, projection, {parsing.event_time()} AS event_time, {parsing.visit_id(end_mark)} AS visit_id"
    )
    reading_order = Schema.new_builder().column_by_expression("read_at", "PROCTIME()").build()
    return computed_once(table_env, table_env.sql_query(f"{parsed} FROM cut"), reading_order)


def follow_clock(table_env: StreamTableEnvironment, settings: Settings) -> Table:
    """The visits of table `parsed`, with their window's end, `closed`, and a watermark derived from it."""
    rows = table_env.sql_query(f"SELECT {VISIT}, read_at FROM parsed WHERE event_time IS NOT NULL")
    reading_order = Schema.new_builder().column_by_expression("read_at", "PROCTIME()").build()
    *before, last = frontier.steps(settings, VISIT)
    for number, step in enumerate(before, start=1):
        table_env.create_temporary_view(f"clock_{number}", rows)
        rows = computed_once(table_env, table_env.sql_query(step.format(rows=f"clock_{number}")), reading_order)
    table_env.create_temporary_view("clock", rows)
    window = settings.number("FLINK_WINDOW_SECONDS") * 1000
    clocked = table_env.sql_query(
        f"SELECT {VISIT}, closed, event_time - MOD(event_time, {window}) + {window} AS ends_at,"
        " TO_TIMESTAMP_LTZ(event_time, 3) AS visited_at, TO_TIMESTAMP_LTZ(closed - 1, 3) AS closed_at"
        f" FROM ({last.format(rows='clock')})"
    )
    return computed_once(table_env, clocked, Schema.new_builder().watermark("visited_at", "closed_at").build())


def iso(timestamp: str) -> str:
    """Expression that formats a TIMESTAMP(3) like contract.visit.iso_time: `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return f"REPLACE(CAST({timestamp} AS STRING), ' ', 'T') || 'Z'"


def headers(reason: str) -> str:
    """Expression of the headers that name the record of `visits` and the reason why it was refused."""
    return f"""MAP['{SOURCE_PARTITION_HEADER}', ENCODE(CAST(source_partition AS STRING), 'UTF-8'),
    '{SOURCE_OFFSET_HEADER}', ENCODE(CAST(source_offset AS STRING), 'UTF-8'),
    '{REASON_HEADER}', ENCODE({reason}, 'UTF-8')]"""


def insert_windows(window_seconds: int) -> str:
    """One row per visit_id and window, written when the watermark passes the window's end."""
    first, last = (f"CAST(TO_TIMESTAMP_LTZ({name}, 3) AS TIMESTAMP(3))" for name in ("first_time", "last_time"))
    return f"""INSERT INTO visit_windows
SELECT visit_id, {iso("window_start")}, {iso("window_end")}, visits, {iso(first)}, {iso(last)},
  CAST(window_end - INTERVAL '0.001' SECOND AS TIMESTAMP_LTZ(3))
FROM (
  SELECT visit_id, window_start, window_end,
    COUNT(*) AS visits, MIN(event_time) AS first_time, MAX(event_time) AS last_time
  FROM TABLE(TUMBLE(TABLE on_time, DESCRIPTOR(visited_at), INTERVAL '{window_seconds}' SECONDS))
  GROUP BY visit_id, window_start, window_end)"""


def insert_late() -> str:
    """The visits whose window is over, unchanged."""
    return f"""INSERT INTO visits_late
SELECT record_key, record_value, source_timestamp, {headers(f"'{LATE_REASON}'")}
FROM clocked WHERE ends_at <= closed"""


def insert_rejected(end_mark: str) -> str:
    """The records that are not visits, unchanged."""
    return f"""INSERT INTO visits_rejected
SELECT record_key, record_value, source_timestamp, {headers(parsing.reason(end_mark))}
FROM parsed WHERE event_time IS NULL"""


def describe(settings: Settings, mode: str) -> StreamExecutionEnvironment:
    """Build the job; the returned environment executes it."""
    configuration = Configuration()
    for name, value in job_configuration(settings, mode).items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    table_env = StreamTableEnvironment.create(environment)
    table_env.execute_sql(tables.visits(settings))
    table_env.execute_sql(tables.visit_windows(settings, mode))
    table_env.execute_sql(tables.refused(settings, "visits_late", "VISITS_LATE_TOPIC", mode))
    table_env.execute_sql(tables.refused(settings, "visits_rejected", "VISITS_REJECTED_TOPIC", mode))

    end_mark = secrets.token_hex(8)
    table_env.create_temporary_view("parsed", parse(table_env, end_mark))
    table_env.create_temporary_view("clocked", follow_clock(table_env, settings))
    table_env.create_temporary_view(
        "on_time", table_env.sql_query("SELECT * FROM clocked WHERE closed IS NULL OR ends_at > closed")
    )
    inserts = table_env.create_statement_set()
    inserts.add_insert_sql(insert_windows(settings.number("FLINK_WINDOW_SECONDS")))
    inserts.add_insert_sql(insert_late())
    inserts.add_insert_sql(insert_rejected(end_mark))
    inserts.attach_as_datastream()
    chain_clocks(environment)
    set_uids(environment)
    return environment


def main() -> None:
    """Read the command line, build the job and submit it to the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, default=None, help="default: FLINK_MODE in .env")
    settings = Settings()
    mode = parser.parse_args().mode or settings.text("FLINK_MODE")
    submitted = describe(settings, mode).execute(settings.text("FLINK_JOB_NAME"))
    leave_settings(settings, mode, str(submitted.get_job_id()))


if __name__ == "__main__":
    main()
