"""The four topics as tables: bytes in, bytes out, so that refused records are written unchanged."""

from __future__ import annotations

from faultline.settings import Settings
from flink_job.guarantees import sink_options, source_options, with_clause


def visits(settings: Settings) -> str:
    """CREATE statement of the source: each record, with its fields when it is a visit.

    Columns `visit_id` and `event_time` (ms since the epoch) are NULL when it is not; `refused` is then the number of
    the reason in faultline.formats.visit.REFUSAL_REASONS, else 0. The format is flink_job/java/.

    Each Kafka partition has a watermark of its own, and the slowest one that is not idle counts. It shows OnTime how
    far the other partitions are, a second at a time.
    """
    bound_ms = settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000
    return f"""CREATE TEMPORARY TABLE visits (
  visit_id STRING,
  event_time BIGINT,
  refused INT,
  record_key BYTES,
  record_value BYTES,
  source_partition INT METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT METADATA FROM 'offset' VIRTUAL,
  source_timestamp TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  visited_at AS TO_TIMESTAMP_LTZ(event_time, 3),
  WATERMARK FOR visited_at AS TO_TIMESTAMP_LTZ((event_time - {bound_ms}) / 1000 * 1000, 3)
) WITH (
  {with_clause(source_options(settings))}
)"""


def visit_windows(settings: Settings, mode: str) -> str:
    """CREATE statement of the sink of windows: faultline.formats.visit.VisitWindow as JSON, key = visit_id.

    The record's timestamp is the window's last millisecond: the wall clock of the run never reaches an output.
    """
    options = sink_options(settings, "VISIT_WINDOWS_TOPIC", mode) | {
        "key.format": "raw",
        "key.fields": "visit_id",
        "value.format": "json",
        "value.fields-include": "ALL",
    }
    return f"""CREATE TEMPORARY TABLE visit_windows (
  visit_id STRING,
  window_start STRING,
  window_end STRING,
  `count` BIGINT,
  first_event_time STRING,
  last_event_time STRING,
  window_timestamp TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'
) WITH (
  {with_clause(options)}
)"""


def refused(settings: Settings, name: str, topic_setting: str, mode: str) -> str:
    """CREATE statement of a sink that writes a record of `visits` unchanged, with headers that give the reason."""
    options = sink_options(settings, topic_setting, mode) | {
        "key.format": "raw",
        "key.fields": "record_key",
        "value.format": "raw",
        "value.fields-include": "EXCEPT_KEY",
    }
    return f"""CREATE TEMPORARY TABLE {name} (
  record_key BYTES,
  record_value BYTES,
  source_timestamp TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  headers MAP<STRING, BYTES> METADATA
) WITH (
  {with_clause(options)}
)"""
