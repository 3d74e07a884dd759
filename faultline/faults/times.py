"""Durations in the samples of a row, each in seconds since the fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faultline.faults.timeline import EVENTS, read_lines

Samples = list[dict[str, Any]]

NOTICED = "noticed by Flink"
RUNNING = "all tasks run again"
FLINK_OUTPUT = "first new committed windows"
SPARK_OUTPUT = "first new committed batch"
CAUGHT_UP = "caught up"
_FURTHER = 1.5
"""So many times as far behind as before the fault is more than jitter."""
GAP = "longest gap without committed windows"


def measure(timeline: dict[str, Any]) -> dict[str, float]:
    """Return the times that this row has; a time that was not reached is left out."""
    broken = phase_begin(timeline, "break")
    if broken is None:
        return {}
    # The moment at which the last line that breaks something had returned.
    there = max((e["at"] for e in timeline["events"] if e["kind"] == "broken"), default=broken)
    noticed = _noticed(timeline["flink"], broken)
    windows = [(each["at"], number) for number, each in enumerate(timeline["seen"], 1)]
    batches = [(each["at"], each["batch"]) for each in timeline["spark"] if "batch" in each]
    found = {
        NOTICED: noticed,
        RUNNING: _running(timeline["flink"], broken),
        # A checkpoint that was complete just before the fault may be committed just after it.
        FLINK_OUTPUT: _grown(windows, broken, max(there, broken + (noticed or 0.0))),
        SPARK_OUTPUT: _grown(batches, broken, there),
        CAUGHT_UP: _caught_up(timeline["kafka"], broken),
        GAP: _longest_gap([at for at, _ in windows], broken, there, phase_begin(timeline, "settle")),
    }
    return {name: round(seconds, 1) for name, seconds in found.items() if seconds is not None}


def longest_gap(timeline: dict[str, Any]) -> float | None:
    """The longest time between two committed windows before settling, in seconds; None with fewer than two windows.

    Of a schedule, whose first fault may come before the first window.
    """
    settled = phase_begin(timeline, "settle")
    moments = sorted(each["at"] for each in timeline["seen"] if settled is None or each["at"] <= settled)
    return round(_longest(moments), 1) if len(moments) > 1 else None


def _longest(moments: list[float]) -> float:
    """The longest time between two neighbours of at least two moments."""
    return max(later - at for at, later in zip(moments, moments[1:]))


def phase_begin(timeline: dict[str, Any], name: str) -> float | None:
    """Return when a phase last began, in seconds since the epoch; None when the phase never began."""
    return max((e["at"] for e in timeline["events"] if e["kind"] == "phase" and e["text"] == name), default=None)


def phase_at(folder: Path, name: str) -> float:
    """Return when a phase of the row in this folder last began; 0 when the phase has not begun."""
    return phase_begin({"events": read_lines(folder / EVENTS)}, name) or 0.0


def _noticed(samples: Samples, broken: float) -> float | None:
    """The first sample after the fault in which the job does not run, or the JobManager does not answer."""
    for each in samples:
        if each["at"] > broken and not _runs(each):
            return float(each["at"] - broken)
    return None


def _runs(sample: dict[str, Any]) -> bool:
    return sample.get("state") == "RUNNING" and sample["running_tasks"] == sample["tasks"]


def _running(samples: Samples, broken: float) -> float | None:
    """The first sample with all tasks running after the last one without."""
    stopped = [each["at"] for each in samples if each["at"] > broken and not _runs(each)]
    if not stopped:
        return None
    return next((each["at"] - broken for each in samples if each["at"] > stopped[-1] and _runs(each)), None)


def _grown(values: list[tuple[float, int]], broken: float, since: float) -> float | None:
    """Seconds from the fault to the first sample after `since` that is above all before."""
    before = max((value for at, value in values if at <= since), default=0)
    return next((at - broken for at, value in values if at > since and value > before), None)


def _caught_up(samples: Samples, broken: float) -> float | None:
    """Return when the job is as little behind again as before; None when the job never was much further behind.

    Flink commits offsets with each checkpoint, so the job is always some seconds behind.
    """
    lags = [
        (each["at"], sum(each["visits"].values()) - sum(each["group"].values()))
        for each in samples
        if "visits" in each and each["group"]
    ]
    before = max((lag for at, lag in lags if at <= broken), default=None)
    worst = max(((at, lag) for at, lag in lags if at > broken), key=lambda each: each[1], default=None)
    if before is None or worst is None or worst[1] <= _FURTHER * before:
        return None
    return next((at - broken for at, lag in lags if at > worst[0] and lag <= before), None)


def _longest_gap(windows: list[float], broken: float, there: float, settled: float | None) -> float | None:
    """The longest time between two committed windows, from the last before the fault to the first one after it.

    Gaps up to the end of the repair, which is when settling begins, count too. None without a window before the fault,
    or after it.
    """
    before = [at for at in windows if at <= broken]
    after = next((at for at in windows if at > there), None)
    if not before or after is None:
        return None
    end = max(after, there if settled is None else settled)
    return _longest([before[-1], *(at for at in windows if broken < at <= end)])
