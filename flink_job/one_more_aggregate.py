"""The windowing job with one more aggregate: how many different pages a visit looked at in each window.

It shows what a change of the job means for the state that it restores. --place says where the aggregate goes:

    own-operator    into a window operator of its own, with a uid and a topic of its own, beside the old one: a restore
                    gives the old operator its state, and the new one begins without any
    same-operator   into the existing window operator: the types of its state change, and Flink refuses the restore
    other-uid       the same under another uid: Flink refuses to leave the old operator's state behind

Submit it by `python -m flink_job.submit --program flink_job/one_more_aggregate.py -- --place own-operator`; walkthrough
20 does that.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from pyflink.datastream import StreamExecutionEnvironment

from faultline.formats.jobs import MODES
from faultline.settings import Settings
from flink_job.guarantees import sink_options, with_clause
from flink_job.names import OPERATORS, Operator, name_operators
from flink_job.stateful_flink_consumer import begin, iso, iso_ms, late, on_time, rejected, run, windows

OWN_OPERATOR, SAME_OPERATOR, OTHER_UID = PLACES = ("own-operator", "same-operator", "other-uid")

_SINK = "visit_windows_and_pages"
_WITH_ANOTHER_SINK = {name: operator for name, operator in OPERATORS.items() if name != "visit_windows"} | {
    # The state of the sink is under this uid, whatever its table is called.
    _SINK: OPERATORS["visit_windows"]
}
OPERATORS_OF = {
    OWN_OPERATOR: OPERATORS
    | {
        "LocalWindowAggregate > visit_pages": Operator("count pages in this task", "pages-local"),
        "GlobalWindowAggregate > visit_pages": Operator("pages per visit_id", "pages"),
        "visit_pages": Operator("visit_pages", "visit_pages-sink"),
    },
    SAME_OPERATOR: _WITH_ANOTHER_SINK,
    OTHER_UID: _WITH_ANOTHER_SINK | {"GlobalWindowAggregate": Operator("windows per visit_id", "windows-and-pages")},
}


def visit_pages(settings: Settings, mode: str) -> str:
    """CREATE statement of the sink of the new operator: JSON, key = visit_id, as visit_windows."""
    options = sink_options(settings, "VISIT_PAGES_TOPIC", mode) | {
        "key.format": "raw",
        "key.fields": "visit_id",
        "value.format": "json",
        "value.fields-include": "ALL",
    }
    return f"""CREATE TEMPORARY TABLE visit_pages (
  visit_id STRING,
  window_start STRING,
  window_end STRING,
  pages BIGINT,
  window_timestamp TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  {with_clause(options)}
)"""


def on_time_pages() -> str:
    """The visits that are counted, with their page: it is not among the parsed fields."""
    return """SELECT visit_id, event_time, visited_at, JSON_VALUE(DECODE(record_value, 'UTF-8'), '$.page') AS page
FROM decided WHERE refused = 0 AND NOT is_late"""


def pages(window_seconds: int) -> str:
    """One row per visit_id and window, beside the row of `windows`."""
    return f"""INSERT INTO visit_pages
SELECT visit_id, {iso("window_start")}, {iso("window_end")}, pages,
  CAST(window_end - INTERVAL '0.001' SECOND AS TIMESTAMP_LTZ(3))
FROM (
  SELECT visit_id, window_start, window_end, COUNT(DISTINCT page) AS pages
  FROM TABLE(TUMBLE(TABLE on_time_pages, DESCRIPTOR(visited_at), INTERVAL '{window_seconds}' SECONDS))
  GROUP BY visit_id, window_start, window_end)"""


def windows_and_pages(window_seconds: int) -> str:
    """The query of `windows` with the aggregate in it."""
    return f"""INSERT INTO {_SINK}
SELECT visit_id, {iso("window_start")}, {iso("window_end")},
  visits, {iso_ms("first_time")}, {iso_ms("last_time")},
  CAST(window_end - INTERVAL '0.001' SECOND AS TIMESTAMP_LTZ(3)), pages
FROM (
  SELECT visit_id, window_start, window_end,
    COUNT(*) AS visits,
    MIN(event_time) AS first_time,
    MAX(event_time) AS last_time,
    COUNT(DISTINCT page) AS pages
  FROM TABLE(TUMBLE(TABLE on_time_pages, DESCRIPTOR(visited_at), INTERVAL '{window_seconds}' SECONDS))
  GROUP BY visit_id, window_start, window_end)"""


def describe(settings: Settings, mode: str, jar: Path, place: str) -> StreamExecutionEnvironment:
    """Build the job with the aggregate in one of PLACES."""
    environment, table_env = begin(settings, mode, jar)
    table_env.create_temporary_view("on_time", table_env.sql_query(on_time()))
    table_env.create_temporary_view("on_time_pages", table_env.sql_query(on_time_pages()))
    window_seconds = settings.number("FLINK_WINDOW_SECONDS")
    inserts = table_env.create_statement_set()
    if place == OWN_OPERATOR:
        table_env.execute_sql(visit_pages(settings, mode))
        inserts.add_insert_sql(windows(window_seconds))
        inserts.add_insert_sql(pages(window_seconds))
    else:
        # The topic and the columns of visit_windows, and one more.
        table_env.execute_sql(f"CREATE TEMPORARY TABLE {_SINK} (pages BIGINT) LIKE visit_windows")
        inserts.add_insert_sql(windows_and_pages(window_seconds))
    inserts.add_insert_sql(late())
    inserts.add_insert_sql(rejected())
    inserts.attach_as_datastream()
    name_operators(environment, OPERATORS_OF[place])
    return environment


def main() -> None:
    """Read the command line and submit the job to the cluster."""
    parser = argparse.ArgumentParser(description="The windowing job with one more aggregate.")
    parser.add_argument("--mode", choices=MODES, default=None, help="default: FLINK_MODE in .env")
    parser.add_argument("--place", choices=PLACES, default=OWN_OPERATOR, help="default: %(default)s")
    arguments = parser.parse_args()
    settings = Settings()
    run(settings, arguments.mode or settings.text("FLINK_MODE"), partial(describe, place=arguments.place))


if __name__ == "__main__":
    main()
