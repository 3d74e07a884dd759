"""The windowing job as tutorials write it, for comparison: to see what it loses or repeats after a kill.

KafkaSource, map, watermarks, keyBy, a tumbling window with a process function, a side output for late visits, KafkaSink
with exactly-once, checkpoints. Judge it with `scripts/verdict.sh classic`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from typing import Any

from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.common.serialization import ByteArraySchema, SimpleStringSchema
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.window import TumblingEventTimeWindows

from faultline.formats.jobs import CLASSIC, MODES, settings_of
from faultline.formats.visit import iso_time, parse_visit
from faultline.settings import Settings
from flink_job.execution import execute, new_environment

VISIT = Types.TUPLE([Types.STRING(), Types.LONG()])
LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.LONG()]))
GUARANTEES = dict(zip(MODES, (DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE), strict=True))


def visits_of(value: bytes) -> Iterator[tuple[str, int]]:
    """Parse a record; one that is not a visit is dropped."""
    visit = parse_visit(value)
    if visit is not None:
        yield visit.visit_id, visit.event_time


class EventTime(TimestampAssigner):  # type: ignore[misc]  # pyflink has no types
    """The event time of a visit."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:  # noqa: ARG002  # Flink's interface
        """Return milliseconds since the epoch."""
        return int(value[1])


class CountVisits(ProcessWindowFunction):  # type: ignore[misc]  # pyflink has no types
    """One JSON document per visit_id and window."""

    def process(self, key: str, context: Any, elements: Iterable[Any]) -> Iterator[str]:
        """Count the visits of a window when it closes."""
        times = [event_time for _, event_time in elements]
        window = context.window()
        yield json.dumps(
            {
                "visit_id": key,
                "window_start": iso_time(window.start),
                "window_end": iso_time(window.end),
                "count": len(times),
                "first_event_time": iso_time(min(times)),
                "last_event_time": iso_time(max(times)),
            }
        )


def sink(settings: Settings, topic: str, mode: str) -> KafkaSink:
    """Write strings to a topic."""
    schema = (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(SimpleStringSchema())
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(settings.bootstrap)
        .set_record_serializer(schema.build())
        .set_delivery_guarantee(GUARANTEES[mode])
        .set_transactional_id_prefix(f"{settings.text('FLINK_TRANSACTIONAL_ID_PREFIX')}-{topic}")
        .set_property("transaction.timeout.ms", settings.text("FLINK_TRANSACTION_TIMEOUT_MS"))
        .build()
    )


def describe(settings: Settings, mode: str) -> StreamExecutionEnvironment:
    """Build the job; the returned environment executes it."""
    environment = new_environment(settings, mode)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(settings.bootstrap)
        .set_topics(settings.text("VISITS_TOPIC"))
        .set_group_id(settings.text("FLINK_GROUP_ID"))
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(ByteArraySchema())
        .set_property("isolation.level", "read_committed")
        .build()
    )
    watermarks = (
        WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS"))
        )
        .with_idleness(Duration.of_seconds(settings.number("FLINK_IDLE_PARTITION_SECONDS")))
        .with_timestamp_assigner(EventTime())
    )
    windows = (
        environment.from_source(source, WatermarkStrategy.no_watermarks(), "visits")
        .flat_map(visits_of, VISIT)
        .assign_timestamps_and_watermarks(watermarks)
        .key_by(lambda visit: visit[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(settings.number("FLINK_WINDOW_SECONDS"))))
        .side_output_late_data(LATE)
        .process(CountVisits(), Types.STRING())
    )
    windows.sink_to(sink(settings, settings.text("VISIT_WINDOWS_TOPIC"), mode)).uid("windows-sink")
    late = windows.get_side_output(LATE).map(
        lambda visit: json.dumps({"visit_id": visit[0], "event_time": iso_time(visit[1])}), Types.STRING()
    )
    late.sink_to(sink(settings, settings.text("VISITS_LATE_TOPIC"), mode)).uid("late-sink")
    return environment


def main() -> None:
    """Read the command line, build the job and submit it to the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, default=None, help="default: FLINK_MODE in .env")
    settings = settings_of(CLASSIC, Settings())
    mode = parser.parse_args().mode or settings.text("FLINK_MODE")
    execute(describe(settings, mode), settings, mode)


if __name__ == "__main__":
    main()
