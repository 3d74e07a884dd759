"""The step between reading and counting that decides which visit is late: the Java operator OnTime (flink_job/java/).

Flink's watermark is not part of a checkpoint: after a restore it begins again, and late visits would count as on
time, for a window that was already written. The operator keeps one clock per Kafka partition in the checkpoint instead.
"""

from __future__ import annotations

from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.table import Schema, StreamTableEnvironment, Table

from faultline.settings import Settings
from flink_job.java_classes import new

NAME = "late or on time"


def decide(table_env: StreamTableEnvironment, rows: Table, settings: Settings) -> Table:
    """The rows, with `is_late` and the rowtime `visited_at`, under the watermark that closes windows.

    `rows` need the columns `event_time` (ms since the epoch, NULL when the record is not a visit) and
    `source_partition`. The rows stay Flink's internal RowData: nothing is converted.
    """
    jvm = get_gateway().jvm
    j_types = jvm.org.apache.flink.table.api.DataTypes
    type_info = jvm.org.apache.flink.table.runtime.typeutils.InternalTypeInfo
    columns = rows._j_table.getResolvedSchema().getColumns()
    fields = _fields(rows)
    j_decided = _rows_of([*fields, j_types.FIELD("is_late", j_types.BOOLEAN().notNull())])
    names = [column.getName() for column in columns]
    event_time, partition = names.index("event_time"), names.index("source_partition")
    partitions = settings.number("TOPIC_PARTITIONS")
    window_ms = slide_ms = settings.number("FLINK_WINDOW_SECONDS") * 1000

    by_partition = new("ByPartition", partition, partitions)
    on_time = new(
        "OnTime",
        event_time,
        partition,
        partitions,
        window_ms,
        slide_ms,
        settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000,
        settings.number("FLINK_IDLE_PARTITION_SECONDS"),
    )
    j_stream = as_stream(table_env, rows).partitionCustom(by_partition, by_partition)
    j_stream = j_stream.transform(NAME, type_info.of(j_decided.getLogicalType()), on_time).uid("late-or-on-time")
    return as_table(table_env, j_stream)


def as_stream(table_env: StreamTableEnvironment, rows: Table) -> Any:
    """The rows as a DataStream of Flink's internal RowData, an object of Java."""
    return table_env._j_tenv.toDataStream(rows._j_table, _rows_of(_fields(rows)))


def as_table(table_env: StreamTableEnvironment, j_stream: Any) -> Table:
    """A DataStream of rows with `event_time` as a table with the rowtime `visited_at`, under its own watermark."""
    schema = (
        Schema.new_builder()
        .column_by_expression("visited_at", "TO_TIMESTAMP_LTZ(event_time, 3)")
        .watermark("visited_at", "SOURCE_WATERMARK()")
        .build()
    )
    return Table(table_env._j_tenv.fromDataStream(j_stream, schema._j_schema), table_env)


def _fields(rows: Table) -> list[Any]:
    j_types = get_gateway().jvm.org.apache.flink.table.api.DataTypes
    columns = rows._j_table.getResolvedSchema().getColumns()
    return [j_types.FIELD(column.getName(), column.getDataType().nullable()) for column in columns]


def _rows_of(fields: list[Any]) -> Any:
    """The type of internal rows with these fields."""
    jvm = get_gateway().jvm
    utils = jvm.org.apache.flink.table.types.utils.DataTypeUtils
    return utils.toInternalDataType(jvm.org.apache.flink.table.api.DataTypes.ROW(fields).notNull())
