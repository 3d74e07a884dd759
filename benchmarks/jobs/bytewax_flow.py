"""The windows in Bytewax: one worker, at-least-once, its state in memory and in a recovery store.

Usage: python -m benchmarks.jobs.bytewax_flow STATE_FOLDER. At the end of the topic it closes all windows and ends.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSource
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.jobs.window_json import late_json, window_json
from faultline.formats.jobs import CLASSIC, settings_of
from faultline.formats.visit import parse_visit
from faultline.settings import Settings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def visit_of(message: Any) -> list[tuple[str, int]]:
    """Parse a record; one that is not a visit is dropped."""
    visit = parse_visit(message.value)
    return [] if visit is None else [(visit.visit_id, visit.event_time)]


def added(times: list[int], event_time: int) -> list[int]:
    """Add a visit to a window."""
    times.append(event_time)
    return times


def describe(settings: Settings) -> Dataflow:
    """Build the flow."""
    brokers = [settings.bootstrap]
    length = settings.number("FLINK_WINDOW_SECONDS") * 1000

    def window(entry: tuple[str, tuple[int, list[int]]]) -> KafkaSinkMessage[bytes, bytes]:
        key, (number, times) = entry
        value = window_json(key, number * length, (number + 1) * length, times)
        return KafkaSinkMessage(key.encode(), value)

    def late(entry: tuple[str, tuple[int, int]]) -> KafkaSinkMessage[bytes, bytes]:
        key, (_, event_time) = entry
        return KafkaSinkMessage(key.encode(), late_json(key, event_time))

    flow = Dataflow("visits")
    records = op.input("read", flow, KafkaSource(brokers, [settings.text("VISITS_TOPIC")], tail=False))
    visits = op.flat_map("parse", records, visit_of)
    clock = win.EventClock(
        ts_getter=lambda event_time: _EPOCH + timedelta(milliseconds=event_time),
        wait_for_system_duration=timedelta(seconds=settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")),
    )
    windower = win.TumblingWindower(length=timedelta(milliseconds=length), align_to=_EPOCH)
    counted = win.fold_window("count", visits, clock, windower, list, added, lambda one, other: one + other)
    outputs = (
        ("windows", counted.down, window, "VISIT_WINDOWS_TOPIC"),
        ("late", counted.late, late, "VISITS_LATE_TOPIC"),
    )
    for name, stream, message, topic in outputs:
        messages = op.map(f"write {name}", stream, message)
        kafka.output(name, messages, brokers=brokers, topic=settings.text(topic))
    return flow


def main() -> None:
    """Read the topic to its end."""
    settings = settings_of(CLASSIC, Settings())
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    init_db_dir(folder, 1)
    interval = timedelta(milliseconds=settings.number("FLINK_CHECKPOINT_INTERVAL_MS"))
    cli_main(describe(settings), epoch_interval=interval, recovery_config=RecoveryConfig(folder))


if __name__ == "__main__":
    main()
