"""The windowing job with a step before the windows that costs milliseconds for each visit: real backpressure.

The step stands for any costly work on a record. Its visits come from all tasks through an exchange, whose buffers fill,
and barriers wait behind them.
"""

from __future__ import annotations

from functools import partial

from pyflink.table import StreamTableEnvironment, Table

from faultline.settings import Settings
from flink_job.on_time import as_stream, as_table
from flink_job.stateful_flink_consumer import describe, run

HASHED_COPIES = 5000
"""So many copies of a visit's bytes are hashed: 2.2 MB."""


def slow(table_env: StreamTableEnvironment) -> Table:
    """The visits that are counted, each after a hash that is never wrong: the filter keeps all of them."""
    visits = table_env.sql_query(
        "SELECT visit_id, event_time, record_value FROM decided WHERE refused = 0 AND NOT is_late"
    )
    exchanged = as_table(table_env, as_stream(table_env, visits).rebalance())
    table_env.create_temporary_view("exchanged", exchanged)
    return table_env.sql_query(
        f"""SELECT visit_id, event_time, visited_at FROM exchanged
WHERE CHAR_LENGTH(SHA2(REPEAT(DECODE(record_value, 'UTF-8'), {HASHED_COPIES}), 256)) = 64"""
    )


if __name__ == "__main__":
    settings = Settings()
    run(settings, settings.text("FLINK_MODE"), partial(describe, counted=slow))
