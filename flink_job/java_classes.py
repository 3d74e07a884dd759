"""The job's Java classes (flink_job/java/), compiled when the job is submitted and sent to the cluster with it.

Flink's own jars contain the compiler, Janino: a Java runtime is enough. It supports generics, but infers no
types, so the sources have casts.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.java_gateway import get_gateway

SOURCES = Path(__file__).parent / "java"
_SERVICES = {"META-INF/services/org.apache.flink.table.factories.Factory": "faultline.visits.VisitFormatFactory\n"}


class CompileError(Exception):
    """A source does not compile; the message is the compiler's."""


def compile_into(folder: Path) -> Path:
    """Compile all classes into a jar in an empty folder; returns its path. Raises CompileError."""
    classes, jar = folder / "classes", folder / "visits.jar"
    classes.mkdir()
    compile_sources(get_gateway(), SOURCES, classes)
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
        for name, text in _SERVICES.items():
            archive.writestr(name, text)
    return jar


def compile_sources(gateway: Any, folder: Path, classes: Path) -> None:
    """Compile all Java files below a folder into the folder `classes`, by the JVM of `gateway`. Raises CompileError."""
    java = gateway.jvm.java
    files = sorted(folder.rglob("*.java"))
    sources = gateway.new_array(java.io.File, len(files))
    for index, file in enumerate(files):
        sources[index] = java.io.File(str(file))
    compiler = gateway.jvm.org.codehaus.janino.CompilerFactory().newCompiler()
    compiler.setDestinationDirectory(java.io.File(str(classes)), False)
    compiler.setTargetVersion(8)
    compiler.setClassPath(_class_path(gateway))
    try:
        compiler.compile(sources)
    except Py4JJavaError as error:
        raise CompileError(str(error.java_exception.getMessage())) from None


def _class_path(gateway: Any) -> Any:
    java = gateway.jvm.java
    entries = java.lang.System.getProperty("java.class.path").split(java.io.File.pathSeparator)
    jars = gateway.new_array(java.io.File, len(entries))
    for index, entry in enumerate(entries):
        jars[index] = java.io.File(entry)
    return jars


def java_class(name: str) -> Any:
    """Return a class of the job, once its jar is on the class path of this program's JVM."""
    loader = get_gateway().jvm.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(f"faultline.visits.{name}")


def new(name: str, *arguments: Any) -> Any:
    """Create an object of a class of the job."""
    gateway = get_gateway()
    (constructor,) = java_class(name).getConstructors()
    values = gateway.new_array(gateway.jvm.Object, len(arguments))
    for index, argument in enumerate(arguments):
        # Java's long and int are both Python's int: the constructor says which one it wants.
        wanted = constructor.getParameterTypes()[index].getName()
        values[index] = gateway.jvm.java.lang.Long.valueOf(argument) if wanted == "long" else argument
    return constructor.newInstance(values)
