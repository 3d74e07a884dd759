"""The windows in Quix Streams: one process, exactly-once, its state in RocksDB and in a changelog topic.

Usage: python -m benchmarks.jobs.quix_streams STATE_FOLDER. It ends when nothing has come for some seconds.
"""

from __future__ import annotations

import sys
from typing import Any

from quixstreams import Application
from quixstreams.models import Deserializer, IgnoreMessage, SerializationContext

from benchmarks.jobs.window_json import late_json, window_json
from faultline.formats.jobs import CLASSIC, settings_of
from faultline.formats.visit import Visit, parse_visit
from faultline.settings import Settings

_QUIET_SECONDS = 5.0


class VisitDeserializer(Deserializer):  # type: ignore[misc]  # its package is in another environment
    """Parses a record; one that is not a visit is skipped."""

    def __call__(self, value: bytes, ctx: SerializationContext) -> Visit:  # noqa: ARG002  # Quix's interface
        """Return the visit. Raises IgnoreMessage when the record is not a visit."""
        visit = parse_visit(value)
        if visit is None:
            raise IgnoreMessage
        return visit


def event_time(value: Visit, *_: object) -> int:
    """The time by which a visit belongs to a window, in ms."""
    return value.event_time


def main() -> None:
    """Read the topic to its end."""
    settings = settings_of(CLASSIC, Settings())
    application = Application(
        broker_address=settings.bootstrap,
        consumer_group=settings.text("FLINK_GROUP_ID"),
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=settings.number("FLINK_CHECKPOINT_INTERVAL_MS") / 1000,
        state_dir=sys.argv[1],
        loglevel="WARNING",
    )
    visits = application.topic(
        settings.text("VISITS_TOPIC"), value_deserializer=VisitDeserializer(), timestamp_extractor=event_time
    )
    windows = application.topic(settings.text("VISIT_WINDOWS_TOPIC"), value_serializer="bytes")
    late = settings.text("VISITS_LATE_TOPIC")
    producer = application.get_producer()

    def send_late(value: Visit, *_: object) -> bool:
        producer.produce(late, late_json(value.visit_id, value.event_time))
        # False: no log line for each late visit.
        return False

    def add(times: list[int], visit: Visit) -> list[int]:
        return [*times, visit.event_time]

    def as_json(window: dict[str, Any], key: bytes, *_: object) -> bytes:
        return window_json(key.decode(), window["start"], window["end"], window["value"])

    frame = application.dataframe(visits)
    counted = frame.tumbling_window(
        settings.number("FLINK_WINDOW_SECONDS") * 1000,
        grace_ms=settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000,
        on_late=send_late,
    ).reduce(reducer=add, initializer=lambda visit: [visit.event_time])
    # A partition's time closes the windows of all its keys; by default each key has its own time.
    closed = counted.final(closing_strategy="partition").apply(as_json, metadata=True)
    closed.to_topic(windows)
    with producer:
        application.run(timeout=_QUIET_SECONDS, collect=False)


if __name__ == "__main__":
    main()
