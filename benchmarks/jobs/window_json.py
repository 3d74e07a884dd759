"""A window as the windowing job writes it, for jobs of other engines."""

from __future__ import annotations

import json

from faultline.formats.visit import iso_time


def window_json(visit_id: str, start: int, end: int, times: list[int]) -> bytes:
    """Write a window of a visit_id; `start` and `end` in ms, `times` the event times of its visits in ms."""
    return json.dumps(
        {
            "visit_id": visit_id,
            "window_start": iso_time(start),
            "window_end": iso_time(end),
            "count": len(times),
            "first_event_time": iso_time(min(times)),
            "last_event_time": iso_time(max(times)),
        }
    ).encode()


def late_json(visit_id: str, event_time: int) -> bytes:
    """Write a late visit; `event_time` in ms."""
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(event_time)}).encode()
