"""Negative controls: jobs and sinks that are broken on purpose, each under three rows. Each must be caught."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.model import Row
from faultline.faults.rows.lines import FIRST_CHECKPOINT, left_open
from faultline.faults.steps import Restore, Step, SubmitChanged

_CANCELLED = (FIRST_CHECKPOINT, *CATALOGUE["job-cancel"].breaks)
_ANY = ("taskmanager-kill", "broker-kill", "jobmanager-freeze")


@dataclass(frozen=True)
class Control:
    """One thing that is wrong, and the rows under which the verdict must find it."""

    name: str
    wrong: str
    pipeline: str
    """The pipeline whose verdict must be `violated`."""
    rows: tuple[str, ...]
    installs: tuple[Step, ...] = ()
    """Steps that put the broken job in the place of the right one."""
    prepares: tuple[Step, ...] = ()
    """Typed before each row: a right job survives it, the broken one does not."""
    instead: Mapping[Step, Step] = field(default_factory=dict)
    """Steps of the repair, each with the one in its place."""
    load: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def under(self, row: Row) -> Row:
        """The row, with this control in it, judged by nothing but the verdict."""
        return replace(
            row,
            name=f"{self.name}-under-{row.name}",
            promise=f"the verdict on {self.pipeline} finds it",
            why=self.wrong,
            control=self.name,
            installs=self.installs,
            caught=self.pipeline,
            prepares=(*self.prepares, *row.prepares),
            heals=tuple(self.instead.get(step, step) for step in row.heals),
            load=self.load or row.load,
            settings=self.settings,
            judged=tuple(judge for judge in row.judged if judge.is_moment),
        )


CONTROLS = (
    Control(
        "job-drops-one-in-a-thousand", "a filter that is wrong for one visit in a thousand", "flink", _ANY,
        installs=(*_CANCELLED, SubmitChanged("drops-one-in-a-thousand")),
        load="--rate 400",
    ),
    Control(
        "job-writes-twice", "a union that doubles each window", "flink", _ANY,
        installs=(*_CANCELLED, SubmitChanged("writes-twice")),
    ),
    Control(
        "job-starts-from-latest", "a repair that starts at the topic's end instead of the checkpoint", "flink",
        ("cancel-restore", "jobmanager-kill", "jobmanager-stop"),
        instead={Restore(): SubmitChanged("starts-from-latest", restores=False)},
    ),
    Control(
        "job-reads-uncommitted", "a source that reads what was aborted", "flink", _ANY,
        installs=(*_CANCELLED, SubmitChanged("reads-uncommitted")),
        prepares=(left_open("visits", 1000),),
    ),
    Control(
        "sink-writes-twice", "a sink that appends a batch again when it runs again", "spark",
        ("synchronizer-kill-before-commit", "commit-deleted", "sink-foreach-append"),
        settings=(("SPARK_SINK", "foreach-append"),),
    ),
)  # fmt: skip
