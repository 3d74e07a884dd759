"""How long things took, from the samples of a row: each in seconds since the fault."""

from __future__ import annotations

from typing import Any

Samples = list[dict[str, Any]]

NOTICED = "noticed by Flink"
RUNNING = "all tasks run again"
FLINK_OUTPUT = "first new committed windows"
SPARK_OUTPUT = "first new committed batch"
CAUGHT_UP = "caught up"
GAP = "longest gap without committed windows"


def measure(timeline: dict[str, Any]) -> dict[str, float]:
    """Return the times that this row has; a time that was not reached is left out."""
    broken = phase_begin(timeline, "break")
    if broken is None:
        return {}
    noticed = _noticed(timeline["flink"], broken)
    # A checkpoint that was complete just before the fault may be committed just after it.
    from_then = broken + (noticed or 0.0)
    found = {
        NOTICED: noticed,
        RUNNING: _running(timeline["flink"], broken),
        FLINK_OUTPUT: _grown(_sums(timeline["kafka"], "stable"), broken, from_then),
        SPARK_OUTPUT: _grown(
            [(each["at"], each["batch"]) for each in timeline["spark"] if "batch" in each], broken, broken
        ),
        CAUGHT_UP: _caught_up(timeline["kafka"], broken),
        GAP: _longest_gap(_sums(timeline["kafka"], "stable")),
    }
    return {name: round(seconds, 1) for name, seconds in found.items() if seconds is not None}


def phase_begin(timeline: dict[str, Any], name: str) -> float | None:
    """When a phase began, in seconds since the epoch."""
    return next((e["at"] for e in timeline["events"] if e["kind"] == "phase" and e["text"] == name), None)


def _sums(samples: Samples, name: str) -> list[tuple[float, int]]:
    return [(each["at"], sum(each[name].values())) for each in samples if name in each]


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
    """Seconds from the fault to the first sample above the highest value until `since`."""
    before = max((value for at, value in values if at <= since), default=None)
    if before is None:
        return None
    return next((at - broken for at, value in values if at > since and value > before), None)


def _caught_up(samples: Samples, broken: float) -> float | None:
    """When the job is as little behind as before, and stays so.

    Flink commits offsets with each checkpoint, so it is always some seconds behind.
    """
    lags = [
        (each["at"], sum(each["visits"].values()) - sum(each["group"].values()))
        for each in samples
        if "visits" in each and each["group"]
    ]
    before = max((lag for at, lag in lags if at <= broken), default=None)
    behind = [at for at, lag in lags if before is not None and at > broken and lag > before]
    return max(behind) - broken if behind else None


def _longest_gap(values: list[tuple[float, int]]) -> float | None:
    """From the first sample on: what came before is not known."""
    grown = [at for at, _ in values[:1]] + [
        at for (_, before), (at, value) in zip(values, values[1:]) if value > before
    ]
    return max((later - at for at, later in zip(grown, grown[1:])), default=None)
