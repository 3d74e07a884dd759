"""A short-lived JVM with Flink's classes, reached through py4j.

PyFlink's own gateway (`pyflink.java_gateway`) starts what a job needs (callback server, watchdog). Reading files needs
only the class path, and without the rest it starts in half the time. A program that defines a job needs all of it.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from faultline.command import first_line
from faultline.inspector.errors import InspectorError
from faultline.java import NoJavaError, find_java
from faultline.settings import Settings, artifacts, store_jars
from faultline.storage.engines import flink_environment, flink_options
from faultline.storage.location import Location
from faultline.storage.objects import ObjectStore, store_among
from faultline.waiting import attempts

GATEWAY = "org.apache.flink.api.python.shaded.py4j.GatewayServer"
PROGRAM_GATEWAY = "org.apache.flink.client.python.PythonGatewayServer"
# Kryo may access the JDK's internals, as with Flink's own scripts.
FLAGS = (
    # It restores the state of an operator, whole: here are a million open windows. The heap takes what it needs.
    "-Xmx1536m",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.stream=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)
_START_SECONDS, _POLL_SECONDS = 120.0, 0.05
_MOST_CAUSES = 50


def class_path(store: ObjectStore | None) -> str:
    """Flink's libraries, as the pip package holds them, and the connectors of the job; its file system for a store.

    Raises InspectorError when this interpreter has no PyFlink, or the connectors or the file system are not there.
    """
    spec = find_spec("pyflink")
    if spec is None or spec.origin is None:
        raise InspectorError("PyFlink is not installed in this interpreter; use the Flink environment (venv-flink)")
    folder = Path(os.environ.get("FLINK_HOME") or Path(spec.origin).parent)
    connectors = artifacts() / "jars" / "flink"
    jars = [*sorted((folder / "lib").glob("flink-*.jar")), *sorted((folder / "lib").glob("log4j-*.jar"))]
    jars += [*sorted((folder / "opt").glob("flink-python-*.jar")), *sorted(connectors.glob("*.jar"))]
    if not any(jar.parent == connectors for jar in jars):
        raise InspectorError(f"no connector jar in {connectors}; run scripts/up.sh once, which fetches them")
    if store is not None:
        folder = store_jars("flink")
        file_system = sorted(folder.glob("*.jar"))
        if not file_system:
            raise InspectorError(
                f"no jar of Flink's file system for s3:// in {folder}; scripts/up.sh fetches it for a stack whose data "
                "is in an object store"
            )
        jars += file_system
    return os.pathsep.join(map(str, jars))


def _command(scratch: Path, store: ObjectStore | None, *program: str) -> list[str]:
    """Return the command line of a JVM that keeps its files in `scratch` and logs nothing."""
    logging = scratch / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n")
    try:
        java = find_java(os.environ)
    except NoJavaError as error:
        raise InspectorError(f"{error}; Flink's files are read by Flink's own classes") from None
    command = [str(java), *Settings().text("JVM_FLAGS_SHORT").split(), *FLAGS, f"-Djava.io.tmpdir={scratch}"]
    return [*command, f"-Dlog4j.configurationFile={logging}", "-cp", class_path(store), *program]


def _start(command: list[str], output: int | TextIO, **environment: str) -> subprocess.Popen[str]:
    """Start the JVM; it ends when this process, whose end closes its standard input, does.

    Ctrl-C does not reach it: it would go in the middle of an answer.
    """
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, env=os.environ | environment,
        start_new_session=True,
    )  # fmt: skip


def _not_started(words: str) -> InspectorError:
    return InspectorError(f"the JVM did not start: {words.strip()[-500:]}")


def _reach(jvm: Any, store: ObjectStore | None) -> None:
    """Tell Flink's file system where the store is: without its address it would ask Amazon's."""
    if store is None:
        return
    options = jvm.org.apache.flink.configuration.Configuration()
    for name, value in flink_options(store).items():
        options.setString(name, value)
    # It is on the class path, and no plugin.
    jvm.org.apache.flink.core.fs.FileSystem.initialize(options, None)


@contextmanager
def flink_jvm(locations: Iterable[Location]) -> Iterator[Any]:
    """Start a JVM that reads these locations and yield its view (`jvm.org.apache.flink…`); it ends with the block.

    Raises InspectorError when Java is missing or does not start, and when Flink's classes cannot read the locations.
    """
    store = store_among(locations)
    with tempfile.TemporaryDirectory(prefix="inspector-") as scratch:
        command = _command(Path(scratch), store, GATEWAY, "--die-on-broken-pipe", "0")
        process = _start(command, subprocess.PIPE, **flink_environment(store))
        assert process.stdout is not None
        assert process.stderr is not None
        port = process.stdout.readline().strip()
        if not port.isdigit():
            process.kill()
            raise _not_started(process.stderr.read())
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auto_convert=True))
        try:
            _reach(gateway.jvm, store)
            yield gateway.jvm
        finally:
            gateway.close()
            # Nothing needs to be flushed: it only reads.
            process.kill()
            process.wait()


@contextmanager
def program_jvm(locations: Iterable[Location]) -> Iterator[tuple[Any, Path]]:
    """Start the JVM that a PyFlink program of this process uses; yield its view and a folder for its files.

    PyFlink can use one JVM in the life of a process, so this can be called once. Raises InspectorError as `flink_jvm`.
    """
    store = store_among(locations)
    with tempfile.TemporaryDirectory(prefix="inspector-") as scratch:
        port, log = Path(scratch) / "port", Path(scratch) / "output"
        with log.open("w") as output:
            command = _command(Path(scratch), store, PROGRAM_GATEWAY)
            process = _start(command, output, _PYFLINK_CONN_INFO_PATH=str(port), **flink_environment(store))
        try:
            # Flink writes the port under another name first.
            for _ in attempts(_START_SECONDS, _POLL_SECONDS):
                if port.exists() or process.poll() is not None:
                    break
            if not port.exists():
                raise _not_started(log.read_text(errors="replace") or "it wrote no port")
            os.environ["PYFLINK_GATEWAY_PORT"] = str(struct.unpack("!I", port.read_bytes()[:4])[0])
            from pyflink.java_gateway import get_gateway  # noqa: PLC0415 - it connects to that port

            gateway = get_gateway()
            try:
                _reach(gateway.jvm, store)
                yield gateway.jvm, Path(scratch)
            finally:
                # Python's copies of Java objects that go away later must not call the JVM.
                gateway.shutdown()
        finally:
            process.kill()
            process.wait()


def each(collection: Any) -> list[Any]:
    """List the elements of a Java collection; py4j itself iterates over lists, sets and maps only.

    Most collections of a checkpoint are empty, and calls cost more than anything else here.
    """
    return [] if collection.isEmpty() else list(collection.toArray())


def system_loader(jvm: Any) -> Any:
    """The loader of the classes on the JVM's class path."""
    return jvm.java.lang.ClassLoader.getSystemClassLoader()


def java_cause(error: Py4JError) -> str:
    """Name the innermost cause in one line: class and message; of an error of py4j itself, its first line."""
    if not isinstance(error, Py4JJavaError):
        return first_line(error)
    exception = error.java_exception
    for _ in range(_MOST_CAUSES):
        if exception.getCause() is None:
            break
        exception = exception.getCause()
    # The lines after the first are guesses for authors of jobs.
    message = str(exception.getMessage() or "").splitlines()[:1]
    return ": ".join([exception.getClass().getSimpleName(), *(each.partition(". ")[0] for each in message)])
