"""The four topics as tables: bytes in, bytes out, so that refused records are written unchanged.

An input value is declared STRING, which the raw format keeps as its bytes, valid UTF-8 or
not: nothing is decoded before the JSON parser needs it.
"""

from __future__ import annotations

from contract.settings import Settings
from flink_job.guarantees import sink_options, source_options, with_clause


def visits(settings: Settings) -> str:
    """CREATE statement of the source: the parts of a record, unparsed."""
    return f"""CREATE TEMPORARY TABLE visits (
  record_key BYTES,
  record_value STRING,
  source_partition INT METADATA FROM 'partition' VIRTUAL,
  source_offset BIGINT METADATA FROM 'offset' VIRTUAL,
  source_timestamp TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL
) WITH (
  {with_clause(source_options(settings))}
)"""


def visit_windows(settings: Settings, mode: str) -> str:
    """CREATE statement of the sink of windows: contract.visit.VisitWindow as JSON, key = visit_id.

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
