"""Aligned and unaligned checkpoints under backpressure: their seconds, their bytes, how many of them complete.

Usage: python -m benchmarks.alignment [VISITS]

The windowing job with a slow step (benchmarks/jobs/slow_step.py) reads a backlog at parallelism 2, once with each kind
of checkpoint. Checkpoints that ended while visits waited in the topic are counted. In the end the verdict judges all
windows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.closing import close_windows
from benchmarks.cpu import Disturbance
from benchmarks.flink_runs import settings_of_run
from benchmarks.job_times import Checkpoint, ended, submitted
from benchmarks.own_stack import OwnStack, own_stack, run_benchmark
from benchmarks.table import row, said
from faultline.messages import say

_VISITS = "30000"
_PARALLELISM = 2
_JOB = "benchmarks/jobs/slow_step.py"
_KINDS = {"aligned": "false", "unaligned": "true"}
_WIDTHS = "{:<10} {:>8} {:>11} {:>9} {:>8} {:>7} {:>12} {:>14} {:>8}  {}"
_HEADING = (
    "barriers", "visits/s", "checkpoints", "completed", "seconds", "most", "written KiB", "in flight KiB", "windows",
    "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Measurements of one run.

    `checkpoints`: those that ended while visits waited in the topic. `windows`: number of windows that came out.
    """

    kind: str
    visits_per_second: float
    checkpoints: tuple[Checkpoint, ...]
    windows: int
    verdict: str
    disturbed: bool


def cells(figures: Figures) -> tuple[object, ...]:
    """The cells of its line: medians of the checkpoints that completed, and the share that these are."""
    complete = [each for each in figures.checkpoints if each.complete]
    share = f"{len(complete) / len(figures.checkpoints):.0%}" if figures.checkpoints else "-"
    return (
        figures.kind, f"{figures.visits_per_second:,.0f}", len(figures.checkpoints), share,
        _median([each.seconds for each in complete], "{:.1f}"),
        f"{max((each.seconds for each in complete), default=0):.1f}",
        _median([each.written_bytes / 1024 for each in complete], "{:,.0f}"),
        _median([each.in_flight_bytes / 1024 for each in complete], "{:,.0f}"),
        f"{figures.windows:,}", said(figures.verdict, disturbed=figures.disturbed),
    )  # fmt: skip


def _median(figures: Sequence[float], form: str) -> str:
    return form.format(statistics.median(figures)) if figures else "-"


def run(stack: OwnStack, kind: str, visits: int) -> Figures:
    """Read the backlog with one kind of checkpoint. Raises StackError when not every visit is accounted for."""
    own = settings_of_run(kind, f"visits-{kind}", _PARALLELISM)
    changed = stack.changed({**own, "FLINK_UNALIGNED": _KINDS[kind]})
    disturbance = Disturbance(stack.mark)
    changed.fill(visits)
    job = submitted(changed, _JOB)
    began, seen = time.monotonic(), dict[int, Checkpoint]()

    def look() -> None:
        seen.update((each.number, each) for each in ended(job.statistics()))

    job.wait_until_read(visits, look, every=1.0)
    seconds = time.monotonic() - began
    close_windows(changed)
    judged = changed.require_right("flink", "--wait", "300")
    job.cancel()
    return Figures(
        kind, visits / seconds, tuple(seen.values()), judged.observed, judged.outcome, disturbance.disturbed()
    )


def measure(visits: int) -> None:
    """Measure both kinds on a separate stack, and print their table."""
    with own_stack() as stack:
        stack.start("kafka", "jobmanager", "taskmanager")
        for number, kind in enumerate(_KINDS):
            say(f"{kind} checkpoints, a backlog of {visits} visits ...")
            figures = run(stack, kind, visits)
            if not number:
                row(_WIDTHS, *_HEADING)
            row(_WIDTHS, *cells(figures))


if __name__ == "__main__":
    run_benchmark("alignment.sh", measure, VISITS=_VISITS)
