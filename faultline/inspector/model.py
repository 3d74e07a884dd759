"""One model for both engines: what a checkpoint holds, and what a restart from it does.

A Spark batch and a Flink checkpoint are both a `CheckpointStep`: a numbered point with a position in every source.
Times are milliseconds since the epoch unless a name says otherwise; offsets count records of a partition,
`end` exclusive. Everything is plain data: `as_dict` and `report_from` turn it into JSON and back.
"""

from __future__ import annotations

import types
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints


@dataclass
class Partition:
    """Records `start` to `end` of one Kafka partition; `start` None: not on record; `end` None: no end was set.

    A negative offset is a word: MARKERS of `words.py`.
    """

    topic: str
    partition: int
    start: int | None
    end: int | None

    @property
    def rows(self) -> int | None:
        """Offsets in the range; None when one end is not known."""
        if self.start is None or self.end is None or self.start < 0 or self.end < 0:
            return None
        return self.end - self.start


@dataclass
class SourceRange:
    """The data that one source gave, or will give, to one step.

    `words`: the data in a sentence. `facts`: the data as it is on record. `name`: the source's name in the query, empty
    where the query names no source.
    """

    kind: str
    words: str
    partitions: list[Partition] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    name: str = ""


@dataclass
class CheckpointStep:
    """A Spark batch (`planned`, `committed`) or a Flink checkpoint (`complete`, `incomplete`).

    A file of a version that is not known here makes a batch `unknown`, a damaged one `unreadable`. A checkpoint that
    cannot be restored is `damaged`, or `copied` when its files are not where its metadata names them. `at`: when it was
    planned or completed. `watermark`: event time of the step, None when there is none. `facts`: what else its commit
    says.
    """

    number: int | None
    name: str
    state: str
    at: int | None = None
    reason: str = ""
    watermark: int | None = None
    size: int | None = None
    path: str = ""
    sources: list[SourceRange] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


@dataclass
class Window:
    """Keys that have state in one open window; `start` None where only the end is on record.

    `visits`: records counted in it so far, None where the state is not this project's own.
    """

    start: int | None
    end: int
    keys: int
    visits: int | None = None


@dataclass
class StateStore:
    """One named state of an operator: `keys` entries; `rows` a preview; `note` why something is not known."""

    name: str
    kind: str
    keys: int | None = None
    partitions: int | None = None
    windows: list[Window] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    note: str = ""


@dataclass
class Operator:
    """An operator with an entry in the checkpoint; a Spark state operator has no uid and no parallelism.

    `words`: what the engine's name for it means, where that needs explaining.
    """

    id: str
    name: str | None = None
    uid: str | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    state_bytes: int | None = None
    watermark: int | None = None
    state: list[StateStore] = field(default_factory=list)
    words: str = ""

    @property
    def label(self) -> str:
        """The operator's name in reports."""
        return self.uid or self.name or self.id


@dataclass
class Transaction:
    """A Kafka transaction that was prepared for a checkpoint; a restore commits it, or commits it again.

    `fate`: what the broker says became of it, a key of `transactions.FATES`; empty when no broker was asked.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    checkpoint: int
    fate: str = ""


@dataclass
class Sink:
    """The file sink's log `_spark_metadata` beside the commits."""

    path: str
    batches: list[int]
    files: int
    words: str


@dataclass
class Growth:
    """Growth of a part of a checkpoint: its bytes now, and bytes a day (None: no steady growth) over `span_ms`."""

    what: str
    size: int
    per_day: int | None
    span_ms: int
    note: str = ""


@dataclass
class Lag:
    """Records of one partition between where a restart goes on (`position`) and the topic's end now.

    `empty`: offsets between them that hold no record, as the end of a transaction and what compaction removed; None
    where there are too many offsets to look.
    """

    topic: str
    partition: int
    position: int
    end: int
    empty: int | None = None

    @property
    def records(self) -> int:
        """Records from the position to the end; where nobody looked, as many as there can be."""
        return self.end - self.position - (self.empty or 0)


@dataclass
class Elsewhere:
    """The restart by other releases of the engine, where that differs from the release that wrote the checkpoint."""

    releases: list[str]
    action: str
    step: int | None
    sentence: str


@dataclass
class Restart:
    """The prediction: `action` is re-run, continue, restore, impossible or unknown; `step` the batch or checkpoint.

    `partitions`: what a re-run reads (start to end), or where reading goes on (`end` None).
    `transactions`: what becomes of those that were prepared for the checkpoint, empty when there are none.
    """

    action: str
    step: int | None
    sentence: str
    partitions: list[Partition] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    transactions: str = ""
    elsewhere: list[Elsewhere] = field(default_factory=list)


@dataclass
class Report:
    """Everything found at one path; `counts` covers all steps, `steps` those that were asked for.

    `formats`: the version of each kind of file, newest first where there are several. `releases`: those of the engine
    that can have written the newest of them, none where nothing says so.
    `notes` are sentences worth knowing. `problems` are sentences that name the file; any makes the exit code 1.
    """

    engine: str
    kind: str
    path: str
    id: str = ""
    releases: list[str] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    steps: list[CheckpointStep] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    configuration: dict[str, str] = field(default_factory=dict)
    sink: Sink | None = None
    growth: list[Growth] = field(default_factory=list)
    restart: Restart | None = None
    lag: list[Lag] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def as_dict(report: Report) -> dict[str, Any]:
    """Turn the report into JSON types, with the computed figures (`rows`, `records`) written out."""
    document = asdict(report)
    for step, data in zip(report.steps, document["steps"], strict=True):
        for source, entry in zip(step.sources, data["sources"], strict=True):
            _add_rows(source.partitions, entry["partitions"])
    if report.restart is not None:
        _add_rows(report.restart.partitions, document["restart"]["partitions"])
    for lag, entry in zip(report.lag, document["lag"], strict=True):
        entry["records"] = lag.records
    return document


def _add_rows(partitions: list[Partition], entries: list[dict[str, Any]]) -> None:
    for partition, entry in zip(partitions, entries, strict=True):
        entry["rows"] = partition.rows


def report_from(document: dict[str, Any]) -> Report:
    """Turn the result of `as_dict` back into a Report."""
    report: Report = _decode(Report, document)
    return report


def _decode(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode(next(part for part in get_args(kind) if part is not type(None)), value)
    if origin is dict:
        return value
    if origin is list:
        return [_decode(get_args(kind)[0], item) for item in value]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{each.name: _decode(hints[each.name], value[each.name]) for each in fields(kind)})
    return value
