"""Compile one engine's guard and pack it into a jar. Same sources and jars in, same bytes out.

The compiler is Janino, which pyspark ships: a Java runtime is enough, no JDK.

Usage: python -m faultline.services.web_guard.build spark|flink JAR FOLDER...

FOLDER...: folders with the jars that it needs: pyspark's, and for flink also Flink's. Exit codes: 0 the jar is written,
1 a jar is missing or the sources do not compile, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faultline.java import NoJavaError, find_java

SOURCES = Path(__file__).resolve().parent / "java"
COMPILER = ("janino-*.jar", "commons-compiler-*.jar")


@dataclass(frozen=True)
class Guard:
    """The guard of one engine: its classes, the jars that it uses, and its service file."""

    classes: tuple[str, ...]
    apis: tuple[str, ...]
    services: Mapping[str, str] = field(default_factory=dict)


# One jar per engine, since Spark's must be made without Flink: the labs do not need Flink.
GUARDS = {
    "spark": Guard(
        ("faultline.web.OriginRule", "faultline.web.SparkGuard"),
        # Jetty is in spark-core, and refers to slf4j.
        ("spark-core_*.jar", "jakarta.servlet-api-*.jar", "slf4j-api-*.jar"),
    ),
    "flink": Guard(
        ("faultline.web.OriginRule", "faultline.web.FlinkGuard", "faultline.web.FlinkGuardFactory"),
        ("flink-dist-*.jar",),
        {
            "META-INF/services/org.apache.flink.runtime.io.network.netty.InboundChannelHandlerFactory": (
                "faultline.web.FlinkGuardFactory\n"
            )
        },
    ),
}
# The oldest time that a zip file can have: the jar does not depend on its build time.
EPOCH = (1980, 1, 1, 0, 0, 0)


class BuildError(Exception):
    """The jar cannot be made; the message names the cause and the next step."""


def find_jars(folders: list[Path], patterns: tuple[str, ...]) -> list[Path]:
    """The one jar of each pattern. Raises BuildError when there is none or more than one."""
    jars = []
    for pattern in patterns:
        found = [jar for folder in folders for jar in sorted(folder.glob(pattern))]
        if len(found) != 1:
            places = ", ".join(map(str, folders))
            raise BuildError(f"{len(found)} files {pattern} in {places}; name the jar folders of pyspark and Flink")
        jars += found
    return jars


def source(name: str) -> Path:
    """The source file of a class."""
    return SOURCES / f"{name.replace('.', '/')}.java"


def compile_sources(guard: Guard, target: Path, folders: list[Path]) -> None:
    """Write the class files into the folder `target`. Raises BuildError with the compiler's messages."""
    try:
        java = find_java(os.environ)
    except NoJavaError as error:
        raise BuildError(f"{error}; install it or set JAVA_HOME") from None
    command = [str(java), "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, find_jars(folders, COMPILER)))]
    # Janino's command line is in a package of samples, but works like javac.
    command += ["org.codehaus.commons.compiler.samples.CompilerDemo", "-d", str(target), "-encoding", "UTF-8"]
    command += ["-g:source,lines", "-classpath", os.pathsep.join(map(str, find_jars(folders, guard.apis)))]
    command += [str(source(name)) for name in guard.classes]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{java} cannot be started: {error.strerror}; install Java or set JAVA_HOME") from None
    if done.returncode != 0:
        raise BuildError(f"the sources in {SOURCES} do not compile:\n{(done.stdout + done.stderr).strip()}")


def pack(jar: Path, classes: Path, services: Mapping[str, str]) -> None:
    """Write the jar: the class files and the services. An existing jar is replaced atomically."""
    entries = {path.relative_to(classes).as_posix(): path.read_bytes() for path in classes.rglob("*.class")}
    entries.update((name, text.encode()) for name, text in services.items())
    jar.parent.mkdir(parents=True, exist_ok=True)
    unfinished = jar.with_name(f"{jar.name}.unfinished")
    # Stored, not deflated: zlib's bytes differ from version to version.
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, entries[name])
    unfinished.replace(jar)


def build(guard: Guard, jar: Path, folders: list[Path]) -> None:
    """Compile and pack. Raises BuildError."""
    with tempfile.TemporaryDirectory(prefix="web-guard-") as classes:
        compile_sources(guard, Path(classes), folders)
        pack(jar, Path(classes), guard.services)


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="faultline.services.web_guard.build", description="Make the jar of a web guard."
    )
    parser.add_argument("engine", choices=GUARDS)
    parser.add_argument("jar", type=Path, metavar="JAR")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    arguments = parser.parse_args()
    try:
        build(GUARDS[arguments.engine], arguments.jar, arguments.folders)
    except BuildError as error:
        print(f"web guard: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
