"""A PyFlink program, run up to the moment at which it submits its job: the job as Flink's client gets it.

The program runs in this process with Flink's own client environment. In place of a cluster there is an executor that
hands the job over and refuses to run it, so nothing is submitted.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from faultline.inspector.errors import InspectorError

TARGET = "inspector"
_PACKAGE = "org.apache.flink.core.execution"

Planned = Callable[[Any, Any, Any], None]
"""Gets the job's StreamGraph, its configuration and the class loader of its program, while the program waits."""


class _Executor:
    """Flink's interface for what runs a job: hands it over, and fails as Flink does when only a plan is wanted."""

    def __init__(self, jvm: Any, planned: Planned) -> None:
        self._jvm, self._planned = jvm, planned
        self.error: BaseException | None = None
        self.calls = 0

    def execute(self, graph: Any, configuration: Any, loader: Any) -> Any:
        self.calls += 1
        try:
            self._planned(graph, configuration, loader)
        except BaseException as error:
            self.error = error
        abort = self._jvm.org.apache.flink.client.program.ProgramAbortException()
        return self._jvm.java.util.concurrent.CompletableFuture.failedFuture(abort)

    class Java:
        implements = (f"{_PACKAGE}.PipelineExecutor",)


class _Factory:
    def __init__(self, executor: _Executor) -> None:
        self._executor = executor

    def getName(self) -> str:
        return TARGET

    def isCompatibleWith(self, configuration: Any) -> bool:  # noqa: ARG002 - Flink's interface
        return True

    def getExecutor(self, configuration: Any) -> _Executor:  # noqa: ARG002 - Flink's interface
        return self._executor

    class Java:
        implements = (f"{_PACKAGE}.PipelineExecutorFactory",)


class _Loader:
    def __init__(self, factory: _Factory) -> None:
        self._factory = factory

    def getExecutorFactory(self, configuration: Any) -> _Factory:  # noqa: ARG002 - Flink's interface
        return self._factory

    def getExecutorNames(self) -> None:
        return None

    class Java:
        implements = (f"{_PACKAGE}.PipelineExecutorServiceLoader",)


def run_program(jvm: Any, program: Path, arguments: Sequence[str], planned: Planned) -> None:
    """Run a program until it submits its job, and call `planned` with the job.

    `jvm` is that of `program_jvm`. What the program prints goes to standard error. Raises InspectorError when the
    program fails before, or ends without a job; what `planned` raises is raised here.
    """
    configuration = jvm.org.apache.flink.configuration.Configuration()
    configuration.setString("execution.target", TARGET)
    thread = jvm.Thread.currentThread()
    # PyFlink adds a job's jars to this one, as it does under `flink run`.
    no_urls = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.net.URL"), 0)
    loader = jvm.java.net.URLClassLoader(no_urls, thread.getContextClassLoader())
    thread.setContextClassLoader(loader)
    executor = _Executor(jvm, planned)
    context = jvm.org.apache.flink.client.program.StreamContextEnvironment
    context.setAsContext(_Loader(_Factory(executor)), configuration, loader, False, False)
    failure: BaseException | None = None
    try:
        _run(program, arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failure = error
    if executor.error is not None:
        raise executor.error
    if not executor.calls:
        raise InspectorError(_no_job(program, failure)) from failure


def _run(program: Path, arguments: Sequence[str]) -> None:
    """Run a Python file as `python FILE ARGUMENT...` does."""
    words, folders = sys.argv, list(sys.path)
    sys.argv, sys.path = [str(program), *arguments], [str(program.parent), *folders]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runpy.run_path(str(program), run_name="__main__")
    finally:
        sys.argv, sys.path = words, folders


def _no_job(program: Path, failure: BaseException | None) -> str:
    if failure is None or (isinstance(failure, SystemExit) and not failure.code):
        return f"{program} ended without submitting a job; name the program that defines the job"
    words = str(failure).strip().splitlines()
    reason = f"{type(failure).__name__}: {words[0] if words else 'no message'}"
    return f"{program} failed before it submitted its job ({reason}); run it with `flink run --python` to see why"
