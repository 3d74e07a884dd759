"""Prepare a run: the folder it works in, its topic and broker, and the environment of its commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from faultline.locks import spark_releases
from faultline.pipelines.line import Line, open_line
from faultline.pipelines.spec import ENVIRONMENTS, Pipeline, SpecError
from faultline.settings import ROOT
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack

_FOLDER = ("output", "pipelines")
NOTE = "pipeline"
"""File beside the runs of a pipeline: the path of its TOML file."""
_JARS_OF_READERS = {"postgres": "postgres", "iceberg": "spark-iceberg"}
"""Group of jars that Spark needs for a sink, by the reader of that sink."""


@dataclass(frozen=True)
class Prepared:
    """A pipeline with every placeholder filled in, and the folder of its run."""

    pipeline: Pipeline
    work: Path
    stack: Stack
    environ: Mapping[str, str] = field(repr=False)
    """The environment of its start command."""
    line: Line | None = None
    """The way from the start command to the Postgres that was started for it."""
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The placeholders of its commands."""
    upgraded: Callable[[], Prepared] | None = field(default=None, repr=False)
    """Makes what the upgraded pipeline needs, which may be another release of its engine."""


def bootstrap_of(stack: Stack) -> str:
    """Addresses of the stack's brokers as programs of this machine see them."""
    return stack.settings.typed.bootstrap


def is_on(stack: Stack, pipeline: Pipeline) -> bool:
    """Return whether the topic of a pipeline is on the brokers of this stack."""
    return pipeline.source.bootstrap in ("", bootstrap_of(stack))


@contextlib.contextmanager
def prepare(stack: Stack, pipeline: Pipeline, run: str = "", *, starts: bool = True) -> Iterator[Prepared]:
    """Fill in a pipeline for one run; `run` makes a folder and a topic of its own, empty for the usual ones.

    Without `starts`, what only its start command needs is left out. A Postgres that the file names runs until the end
    of the block. Raises StackError, SpecError.
    """
    work = stack.home.root.joinpath(*_FOLDER, pipeline.name, run or "run")
    _refuse_runs_of_another(work.parent / NOTE, pipeline)
    topic = f"{pipeline.source.topic}_{run}" if run else pipeline.source.topic
    bootstrap = pipeline.source.bootstrap or bootstrap_of(stack)
    names = {"topic": topic, "bootstrap": bootstrap, "work": str(work), "here": str(pipeline.file.resolve().parent)}
    with contextlib.ExitStack() as held:
        direct, line = dict(names), None
        if "postgres" in pipeline.uses:
            # Its packages are needed only here.
            server = import_module("faultline.pipelines.server")
            port = held.enter_context(server.own_postgres(work, stack.environ, stack.address))
            line = held.enter_context(open_line(stack.address, port))
            names["postgres"] = server.url_at(stack.address, line.port)
            # What is judged is read past the line, which may be cut.
            direct["postgres"] = server.url_at(stack.address, port)
        output = pipeline.filled(direct).output
        judged = replace(
            output, bootstrap=output.bootstrap or bootstrap, path=str(work / output.path) if output.path else ""
        )

        def prepared_from(written: Pipeline) -> Prepared:
            environ, jars = _started(stack, written) if starts else ({}, {})
            filled = written.filled({**names, **jars})
            source = replace(filled.source, bootstrap=bootstrap)
            return Prepared(
                replace(filled, source=source, output=judged), work, stack, environ, line, {**names, **jars}
            )

        yield replace(prepared_from(pipeline), upgraded=lambda: prepared_from(pipeline.upgraded))


def _refuse_runs_of_another(note: Path, pipeline: Pipeline) -> None:
    """Raise SpecError when the runs of a pipeline's name are those of another file."""
    if note.exists() and (other := note.read_text(encoding="utf-8")) != str(pipeline.file.resolve()):
        raise SpecError(
            f"{pipeline.file}: {note.parent} has the runs of {other}, a file of the same name; rename one of the two"
            " files, or move the folder away"
        )


def _started(stack: Stack, pipeline: Pipeline) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the environment of a start command, and its placeholders for jars. Raises StackError."""
    local = LocalBackend(stack.settings, stack.home)
    environment = pipeline.start.environment if pipeline.start else ""
    folder = _folder_of(local, environment) if environment else local.artifacts.folder
    jars = {}
    if "spark_jars" in pipeline.uses:
        root = folder / "artifacts" if environment in spark_releases() else local.artifacts.folder
        jars["spark_jars"] = _spark_jars(local, root, pipeline.output.reader)
    if "flink_jars" in pipeline.uses:
        jars["flink_jars"] = ";".join(jar.as_uri() for jar in _jars_of(local, f"flink-{pipeline.output.reader}"))
    return _environ(stack, local, environment, folder), jars


def _environ(stack: Stack, local: LocalBackend, name: str, folder: Path) -> Mapping[str, str]:
    """Environment of the start command. `folder`: the virtual environment of that name."""
    if not name:
        return stack.environ
    # Only the engines need Java.
    made = local.plain_environment("pipeline") if name == "python" else local.environment("tools")
    environ = {**made, "PATH": f"{folder / 'bin'}{os.pathsep}{made['PATH']}", "PYTHONUNBUFFERED": "1"}
    for home in folder.glob("lib/python*/site-packages/pyspark"):
        # The start script of a wheel looks for it with the `python3` of the system.
        environ |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(folder / "bin" / "python")}
    return environ


def _folder_of(local: LocalBackend, environment: str) -> Path:
    """Folder of a virtual environment; that of another release of Spark is made when it is missing."""
    if environment in spark_releases():
        return _release(local, environment)
    return local.artifacts.environment(ENVIRONMENTS[environment])


def _release(local: LocalBackend, name: str) -> Path:
    """Make the environment of another release of Spark where it is missing; returns its folder. Raises StackError."""
    local.artifacts.make_tools()
    program = [str(local.artifacts.interpreter("tools")), "-m", "faultline.packages.release"]
    done = subprocess.run(
        [*program, *name.split("-", 1)],
        env=local.environment("tools"),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise StackError(f"the environment {name} could not be made, see the lines above; then run again")
    return local.artifacts.folder / name


def _spark_jars(local: LocalBackend, root: Path, reader: str) -> str:
    """Paths of the jars that Spark needs beside its own: the Kafka source, Delta Lake, and the sink's.

    `root`: the folder of artifacts of this release.
    """
    jars = sorted((root / "jars" / "spark").glob("*.jar"))
    if group := _JARS_OF_READERS.get(reader):
        jars += _jars_of(local, group)
    return ",".join(map(str, jars))


def _jars_of(local: LocalBackend, group: str) -> list[Path]:
    """Jars of a group that no stack needs; fetched when they are missing."""
    local.artifacts.fetch_single_jars(group)
    return sorted((local.artifacts.folder / "jars" / group).glob("*.jar"))


def find(word: str) -> Path:
    """Return the file that a word names: a path, or the name of a file in the folder pipelines/. Raises SpecError."""
    path = Path(word)
    known = sorted((ROOT / "pipelines").glob("**/*.toml"))
    if path.suffix == ".toml" or path.exists():
        return path
    for each in known:
        if each.stem == word:
            return each
    names = ", ".join(each.stem for each in known)
    raise SpecError(f"there is no file {word} and no pipeline of this name; pipelines/ has {names}")
