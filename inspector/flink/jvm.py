"""A short-lived JVM with Flink's classes, reached through py4j.

PyFlink's own gateway (`pyflink.java_gateway`) starts what a job needs (callback server, watchdog, the
configuration of a cluster). Reading files needs only the class path, and without the rest it starts in half the time.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from contract.settings import Settings, artifacts
from inspector.errors import InspectorError

GATEWAY = "org.apache.flink.api.python.shaded.py4j.GatewayServer"
# Kryo may access the JDK's internals, as with Flink's own scripts.
FLAGS = (
    "-Xmx512m",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.stream=ALL-UNNAMED",
    "--add-opens=java.base/java.time=ALL-UNNAMED",
)


def class_path() -> str:
    """Flink's libraries, as the pip package holds them, and the connectors of the job.

    Raises InspectorError when this interpreter has no PyFlink, or the connectors are not there.
    """
    spec = find_spec("pyflink")
    if spec is None or spec.origin is None:
        raise InspectorError("PyFlink is not installed in this interpreter; use the Flink environment (venv-flink)")
    home = Path(os.environ.get("FLINK_HOME") or Path(spec.origin).parent)
    connectors = artifacts() / "jars" / "flink"
    jars = [*sorted((home / "lib").glob("flink-*.jar")), *sorted((home / "lib").glob("log4j-*.jar"))]
    jars += [*sorted((home / "opt").glob("flink-python-*.jar")), *sorted(connectors.glob("*.jar"))]
    if not any(jar.parent == connectors for jar in jars):
        raise InspectorError(f"no connector jar in {connectors}; run scripts/up.sh once, which fetches them")
    return os.pathsep.join(map(str, jars))


@contextmanager
def flink_jvm() -> Iterator[Any]:
    """Start a JVM and yield its view (`jvm.org.apache.flink…`); it ends with the block.

    Raises InspectorError when Java is missing or does not start.
    """
    with tempfile.TemporaryDirectory(prefix="inspector-") as scratch:
        logging = Path(scratch) / "log4j2.properties"
        logging.write_text("rootLogger.level = off\n")
        command = ["java", *Settings().text("JVM_FLAGS_SHORT").split(), *FLAGS, f"-Djava.io.tmpdir={scratch}"]
        command += [f"-Dlog4j.configurationFile={logging}", "-cp", class_path(), GATEWAY]
        # The gateway ends when its standard input closes: it cannot outlive this process.
        command += ["--die-on-broken-pipe", "0"]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except FileNotFoundError:
            raise InspectorError("java is not on PATH; Flink's files are read by Flink's own classes") from None
        assert process.stdout is not None
        assert process.stderr is not None
        port = process.stdout.readline().strip()
        if not port.isdigit():
            process.kill()
            raise InspectorError(f"the JVM did not start: {process.stderr.read().strip()[-500:]}")
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auto_convert=True))
        try:
            yield gateway.jvm
        finally:
            gateway.close()
            # Nothing needs to be flushed: it only reads.
            process.kill()
            process.wait()


def each(jvm: Any, collection: Any) -> list[Any]:
    """List the elements of a Java collection; py4j itself iterates over lists, sets and maps only."""
    return list(jvm.java.util.ArrayList(collection))


def java_cause(error: Py4JJavaError) -> str:
    """Name the innermost cause in one line: class and message."""
    exception = error.java_exception
    while exception.getCause() is not None:
        exception = exception.getCause()
    # The lines after the first are guesses for authors of jobs.
    message = str(exception.getMessage() or "").splitlines()[:1]
    return ": ".join([exception.getClass().getSimpleName(), *(each.partition(". ")[0] for each in message)])
