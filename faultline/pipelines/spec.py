"""The TOML file of a pipeline: its keys, and what is wrong with it, in one line."""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from faultline.command import CommandError
from faultline.locks import spark_releases

EXACTLY_ONCE, AT_LEAST_ONCE, NONE = "exactly-once", "at-least-once", "none"
PROMISES = (EXACTLY_ONCE, AT_LEAST_ONCE, NONE)
ENVIRONMENTS = {"": "", "spark": "tools", "flink": "flink", "python": "pipeline"}
"""Values of `start.environment`, and the project's environment behind each; empty is the user's own.

Another release of Spark is `spark-4.1`, say: its environment is made when a pipeline names it.
"""
PLACEHOLDERS = ("bootstrap", "topic", "work", "here", "spark_jars", "flink_jars", "postgres")
"""Names in braces that strings of the file may have, except the query."""
FLINK_JARS = ("postgres", "iceberg")
"""Readers whose sinks need jars that Flink's environment lacks: it has those of Kafka and of files."""

STEP_SECONDS = 600.0
"""The most seconds that a step of a run takes: a feed, or the output until it rests."""
_COMMANDS = ("command", "stop", "kill")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_TYPES = {str: "a string", int: "a whole number", bool: "true or false"}


class SpecError(CommandError):
    """The file of a pipeline cannot be used; the message names the file, the key and the next step."""


@dataclass(frozen=True)
class Source:
    """The topic that the pipeline reads.

    `bootstrap`: its broker as HOST:PORT; empty for this stack's. `partitions`: of a topic that is created here.
    `binary`: key and value are BLOBs in the query, and not text.
    """

    topic: str
    bootstrap: str = ""
    partitions: int = 2
    binary: bool = False


@dataclass(frozen=True)
class Feed:
    """The records that `run` and `faults` send: by a command, of a file line by line, or visits of the generator."""

    records: int = 4000
    per_second: int = 200
    file: str = ""
    command: str = ""


@dataclass(frozen=True)
class Start:
    """The command of the pipeline, which stays in the foreground until the pipeline ends.

    `stop`, `kill`: commands that do it where a signal to the command's processes does not, as for a container.
    `stop_seconds`: from SIGTERM to SIGKILL. `quiet_seconds`: an output that has not grown for so long is complete.
    """

    command: str
    environment: str = ""
    stop: str = ""
    kill: str = ""
    stop_seconds: int = 30
    quiet_seconds: int = 60


@dataclass(frozen=True)
class Upgrade:
    """The pipeline after an upgrade; an empty key is as in `Start`."""

    command: str = ""
    environment: str = ""


@dataclass(frozen=True)
class Checkpoint:
    """The folder where the pipeline keeps how far it has read."""

    folder: str


@dataclass(frozen=True)
class Output:
    """The sink: `reader` is a key of _OF_READER, the other keys say where it is.

    `binary`: key and value of a topic are BLOBs. `escape`: the character before a quote in a quoted text of a CSV file.
    `sql`: a query over the table `output`, which makes the columns to compare.
    """

    reader: str
    path: str = ""
    topic: str = ""
    bootstrap: str = ""
    committed: bool = True
    url: str = ""
    table: str = ""
    binary: bool = False
    header: bool = True
    escape: str = '"'
    sql: str = ""


@dataclass(frozen=True)
class Expected:
    """The query over the table `source` that yields the rows which must come out."""

    sql: str


@dataclass(frozen=True)
class Pipeline:
    """A pipeline, as its file says. Without `start` it can be judged only."""

    name: str
    file: Path
    promise: str
    source: Source
    output: Output
    expected: Expected
    start: Start | None = None
    feed: Feed = Feed()
    checkpoint: Checkpoint | None = None
    upgrade: Upgrade | None = None

    @property
    def uses(self) -> frozenset[str]:
        """The placeholders in the strings of the file."""
        tables = (self.source, self.output, self.start, self.feed, self.checkpoint, self.upgrade)
        return frozenset().union(*(placeholders(table) for table in tables if table is not None))

    @property
    def upgraded(self) -> Pipeline:
        """The pipeline after its upgrade."""
        assert self.start and self.upgrade, "a row that upgrades does not apply without both tables"
        changed = {each.name: value for each in fields(self.upgrade) if (value := getattr(self.upgrade, each.name))}
        return replace(self, start=replace(self.start, **changed), upgrade=None)

    def filled(self, names: Mapping[str, str]) -> Pipeline:
        """Return the pipeline with the placeholders filled in, but in its commands; those that `names` lacks stay."""
        tables = {name: _filled(getattr(self, name), names) for name in ("output", "start", "feed", "checkpoint")}
        source = replace(self.source, topic=names.get("topic", self.source.topic))
        return replace(self, source=source, **tables)


_OF_READER = {
    "kafka": ("topic",),
    "json": ("path",),
    "csv": ("path",),
    "parquet": ("path",),
    "delta": ("path",),
    "iceberg": ("path",),
    "postgres": ("url", "table"),
}
"""Keys that each reader needs."""


def read(file: Path) -> Pipeline:
    """Read the file of a pipeline. Raises SpecError."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{file} does not exist; docs/pipelines.md has a complete file") from None
    except OSError as error:
        raise SpecError(f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{file} is not TOML: {error}") from None
    kinds = {
        "source": Source, "feed": Feed, "start": Start, "upgrade": Upgrade, "checkpoint": Checkpoint, "output": Output,
        "expected": Expected,
    }  # fmt: skip
    _refuse_unknown(file, "", document, ("promise", *kinds))
    promise = document.get("promise")
    if promise not in PROMISES:
        raise SpecError(f"{file}: promise is {promise!r}; write one of {', '.join(PROMISES)}")
    tables = {name: _table(file, name, document[name], kind) for name, kind in kinds.items() if name in document}
    for name in ("source", "output", "expected"):
        if name not in tables:
            raise SpecError(f"{file} has no table [{name}]; docs/pipelines.md says what it has to contain")
    return _checked(Pipeline(file.stem, file, promise, **tables))


def _table(file: Path, name: str, content: object, kind: type[Any]) -> Any:
    if not isinstance(content, dict):
        raise SpecError(f"{file}: {name} is not a table; write [{name}] and its keys below")
    hints, known = get_type_hints(kind), fields(kind)
    _refuse_unknown(file, f"{name}.", content, tuple(each.name for each in known))
    for each in known:
        if each.name not in content:
            if each.default is MISSING:
                raise SpecError(f"{file} lacks the key {name}.{each.name}; docs/pipelines.md says what it is")
        elif type(content[each.name]) is not hints[each.name]:
            raise SpecError(f"{file}: {name}.{each.name} is not {_TYPES[hints[each.name]]}")
    return kind(**content)


def _refuse_unknown(file: Path, prefix: str, found: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"is it {prefix}{near[0]}?" if near else f"known are {', '.join(known)}"
            raise SpecError(f"{file}: unknown key {prefix}{key}; {hint}")


def _checked(pipeline: Pipeline) -> Pipeline:
    """Refuse values that do not go together. Raises SpecError."""
    file, output = pipeline.file, pipeline.output
    if output.reader not in _OF_READER:
        raise SpecError(f"{file}: output.reader is {output.reader!r}; write one of {', '.join(_OF_READER)}")
    for key in _OF_READER[output.reader]:
        if not getattr(output, key):
            raise SpecError(f"{file} lacks the key output.{key}, which the reader {output.reader} needs")
    for name in sorted(pipeline.uses - set(PLACEHOLDERS)):
        known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        raise SpecError(f"{file}: unknown placeholder {{{name}}}; known are {known}")
    if "flink_jars" in pipeline.uses and output.reader not in FLINK_JARS:
        readers = " and ".join(FLINK_JARS)
        raise SpecError(f"{file}: {{flink_jars}} is for the readers {readers}; leave it out, Flink has all it needs")
    for key, table in (("start", pipeline.start), ("upgrade", pipeline.upgrade)):
        if table and table.environment not in (*ENVIRONMENTS, *spark_releases()):
            names = ", ".join([*filter(None, ENVIRONMENTS), *spark_releases()])
            raise SpecError(f"{file}: {key}.environment is {table.environment!r}; write one of {names}, or none")
    _require_words(pipeline)
    if pipeline.start and not pipeline.start.command.strip():
        raise SpecError(f"{file}: start.command is empty; write the command that runs the pipeline in the foreground")
    if pipeline.upgrade and not pipeline.start:
        raise SpecError(f"{file} has a table [upgrade] and no table [start]; add what runs before the upgrade")
    if pipeline.upgrade == Upgrade():
        raise SpecError(f"{file}: [upgrade] changes nothing; write upgrade.command or upgrade.environment")
    counts = [("feed.records", pipeline.feed.records), ("feed.per_second", pipeline.feed.per_second)]
    for key, value in [*counts, ("source.partitions", pipeline.source.partitions)]:
        if value < 1:
            raise SpecError(f"{file}: {key} is {value}; write a number above 0")
    _check_seconds(pipeline)
    return pipeline


def _check_seconds(pipeline: Pipeline) -> None:
    """Refuse times that no run can keep. Raises SpecError."""
    file, feed, start = pipeline.file, pipeline.feed, pipeline.start
    if not (feed.file or feed.command) and feed.records / feed.per_second > STEP_SECONDS:
        raise SpecError(
            f"{file}: feed.records at feed.per_second takes {feed.records / feed.per_second:,.0f} s, and a feed has"
            f" {STEP_SECONDS:g} s; write fewer records, or more a second"
        )
    for key, value in (
        {"stop_seconds": start.stop_seconds, "quiet_seconds": start.quiet_seconds}.items() if start else ()
    ):
        if not 0 <= value < STEP_SECONDS / 2:
            raise SpecError(f"{file}: start.{key} is {value}; write a number from 0 to {STEP_SECONDS / 2:g}")


def _require_words(pipeline: Pipeline) -> None:
    """Raise SpecError when the quotes of a command do not match."""
    for key in ("start", "upgrade", "feed"):
        for name in _COMMANDS:
            try:
                shlex.split(getattr(getattr(pipeline, key), name, ""))
            except ValueError as error:
                raise SpecError(f"{pipeline.file}: {key}.{name} is no command: {error}") from None


def placeholders(table: Any) -> frozenset[str]:
    """Return the placeholders in the strings of a table, except its query."""
    texts = [getattr(table, each.name) for each in fields(table) if each.name != "sql"]
    return frozenset(name for text in texts if isinstance(text, str) for name in _PLACEHOLDER.findall(text))


def _filled(table: Any, names: Mapping[str, str]) -> Any:
    if table is None:
        return None
    texts = {each.name: getattr(table, each.name) for each in fields(table) if each.name not in ("sql", *_COMMANDS)}
    return replace(table, **{key: filled(text, names) for key, text in texts.items() if isinstance(text, str)})


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the placeholders filled in; those that `names` lacks stay."""
    return _PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), text)
