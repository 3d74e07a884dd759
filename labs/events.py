"""Files of device events for the labs that read files: small, and the same at each run."""

from __future__ import annotations

import json
import os
from pathlib import Path

Row = tuple[str, str, float]
"""(eventId, deviceId, temperature), as `spark_job.devices_file_stream` makes one of each device."""

_DEVICES = 2
# Modification times a second apart: Spark takes files by their age, so that batch N is file N.
_FIRST_MTIME = 1_767_225_600  # 2026-01-01T00:00:00Z


def rows_of(first: int, events: int, warmer: float = 0.0) -> list[Row]:
    """Return the rows of events `first`, `first + 1`, ...; `warmer` is added to each temperature, in °C."""
    return [
        (f"event-{number:04d}", f"device-{device}", 20.0 + number + device / 10 + warmer)
        for number in range(first, first + events)
        for device in range(1, _DEVICES + 1)
    ]


def write(path: Path, rows: list[Row], mtime: int) -> list[Row]:
    """Write a file of events whose rows are these, as of `mtime` seconds after the first; returns the rows."""
    events: dict[str, list[dict[str, object]]] = {}
    for event, device, temperature in rows:
        events.setdefault(event, []).append({"deviceId": device, "temperature": temperature})
    lines = [json.dumps({"eventId": event, "data": {"devices": devices}}) for event, devices in events.items()]
    # Written elsewhere and moved: a file source must never see half a file.
    unfinished = path.parent.with_name(f"{path.name}.unfinished")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(unfinished, (_FIRST_MTIME + mtime, _FIRST_MTIME + mtime))
    unfinished.replace(path)
    return rows
