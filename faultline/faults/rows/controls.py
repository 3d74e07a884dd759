"""Negative controls: jobs and sinks that are broken on purpose, each under three rows. Each must be caught."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from faultline.faults.model import Row, Step
from faultline.faults.rows.lines import FAULT, FROM_LATEST, changed_job, left_open

_DROP = 's/AND NOT is_late\\"/AND NOT is_late AND MOD(source_offset, 1000) <> 7\\"/'
_WINDOWS = r"windows(settings.number(\"FLINK_WINDOW_SECONDS\"))"
_DOUBLE = (
    rf"s/add_insert_sql({_WINDOWS})/"
    rf"add_insert_sql({_WINDOWS} + \" UNION ALL SELECT\" + {_WINDOWS}.partition(\"SELECT\")[2])/"
)
_CANCEL = FAULT["job-cancel"].breaks
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
    """Lines that put the broken job in the place of the right one."""
    prepares: tuple[Step, ...] = ()
    """Typed before each row: a right job survives it, the broken one does not."""
    instead: dict[str, str] = field(default_factory=dict)
    """Lines of the repair that are replaced."""
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
            heals=tuple(replace(step, command=self.instead.get(step.command, step.command)) for step in row.heals),
            load=self.load or row.load,
            settings=self.settings,
            judged=tuple(judge for judge in row.judged if judge.is_moment),
        )


CONTROLS = (
    Control(
        "job-drops-one-in-a-thousand", "a filter that is wrong for one visit in a thousand", "flink", _ANY,
        installs=(
            *_CANCEL,
            Step(changed_job(_DROP, FROM_LATEST)),
        ),
        load="--rate 400",
    ),
    Control(
        "job-writes-twice", "a union that doubles each window", "flink", _ANY,
        installs=(
            *_CANCEL,
            Step(changed_job(_DOUBLE, FROM_LATEST)),
        ),
    ),
    Control(
        "job-starts-from-latest", "a repair that starts at the topic's end instead of the checkpoint", "flink",
        ("cancel-restore", "jobmanager-kill", "jobmanager-stop"),
        instead={"scripts/flink_restore.sh latest": changed_job("s/earliest-offset/latest-offset/", "")},
    ),
    Control(
        "job-reads-uncommitted", "a source that reads what was aborted", "flink", _ANY,
        installs=(*_CANCEL, Step(changed_job("s/read_committed/read_uncommitted/", FROM_LATEST))),
        prepares=(left_open("visits", 1000),),
    ),
    Control(
        "sink-writes-twice", "a sink that appends a batch again when it runs again", "spark",
        ("synchronizer-kill-before-commit", "commit-deleted", "sink-foreach-append"),
        settings=(("SPARK_SINK", "foreach-append"),),
    ),
)  # fmt: skip
