"""Files of device events for the labs that read files: small, and the same at each run."""

from __future__ import annotations

import json
from pathlib import Path

from labs.frame.dated_files import put

Row = tuple[str, str, float]
"""(eventId, deviceId, temperature): the row that `spark_job.devices_file_stream` makes of each device."""

_DEVICES = 2


def rows_of(first: int, events: int, warmer: float = 0.0) -> list[Row]:
    """Return the rows of events `first`, `first + 1`, ...; `warmer` is added to each temperature, in °C."""
    return [
        (f"event-{number:04d}", f"device-{device}", 20.0 + number + device / 10 + warmer)
        for number in range(first, first + events)
        for device in range(1, _DEVICES + 1)
    ]


def write(path: Path, rows: list[Row], mtime: int) -> list[Row]:
    """Write a file of events with these rows, `mtime` seconds after the first file; returns the rows."""
    events: dict[str, list[dict[str, object]]] = {}
    for event, device, temperature in rows:
        events.setdefault(event, []).append({"deviceId": device, "temperature": temperature})
    lines = [json.dumps({"eventId": event, "data": {"devices": devices}}) for event, devices in events.items()]
    put(path, lines, mtime)
    return rows
