"""Resolve and fetch the jars that pip does not carry, by Apache Ivy, checked by hash.

Ivy itself comes with pyspark, so that no build tool has to be installed.

Usage:
    python faultline/packages/jars.py lock          resolve jars.in with all dependencies, write jars.lock
    python faultline/packages/jars.py fetch GROUP DIRECTORY [--lock FILE]   put one group's jars into DIRECTORY
    python faultline/packages/jars.py pin FILE      fetch the jars that a list names, and write their hashes

`fetch` takes exactly the artifacts that the lock names (no transitive resolution) and refuses
one whose SHA-256 differs. Lists of single jars, which no image has: releases.jars, schemas.jars and pipelines.jars.
Exit codes: 0 done, 1 a jar is missing or differs from the lock, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

LOCKS = Path(__file__).resolve().parents[2] / "docker" / "requirements"
ROOTS = LOCKS / "jars.in"
LOCK = LOCKS / "jars.lock"
# Jars of the Spark distribution must not exist twice. The broker's tools depend on all of
# Kafka Connect, half of the download, for a command that is not used here. ZooKeeper needs Netty for TLS only.
PROVIDED = {
    "zookeeper": ("io.netty:*", "org.apache.yetus:audience-annotations"),
    "kafka": ("org.apache.kafka:connect-runtime", "org.apache.kafka:connect-transforms"),
    "spark": (
        "org.apache.spark:spark-sql_2.13",
        "org.apache.spark:spark-tags_2.13",
        "at.yawk.lz4:*",
        "com.fasterxml.jackson.core:*",
        "com.github.luben:*",
        "commons-pool:*",
        "io.airlift:*",
        "org.apache.logging.log4j:*",
        "org.apache.parquet:*",
        "org.locationtech.jts:*",
        "org.roaringbitmap:*",
        "org.apache.hadoop:*",
        "org.scala-lang:*",
        "org.lz4:*",
        "org.xerial.snappy:*",
        "org.slf4j:*",
        "org.antlr:*",
        "com.google.code.findbugs:jsr305",
        "org.scala-lang.modules:*",
    ),
    # Spark has these, Netty in a newer version. OpenSSL is for encrypted connections only.
    "spark-s3": (
        "software.amazon.awssdk:bundle",
        "org.wildfly.openssl:*",
        "io.netty:*",
        "org.apache.httpcomponents:*",
        "commons-codec:*",
        "commons-logging:*",
        "org.slf4j:*",
    ),
}
RETRIEVE_PATTERN = "[organisation]__[artifact]__[revision].[ext]"


class JarError(Exception):
    """A jar is missing, or differs from the lock; the message names it and the next step."""


@dataclass(frozen=True, order=True)
class Jar:
    """One artifact: consumer group, Maven coordinates, and the hash of its file ('' if unknown)."""

    group: str
    organisation: str
    name: str
    version: str
    sha256: str = ""

    @property
    def coordinates(self) -> str:
        """`organisation:name:version`."""
        return f"{self.organisation}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        """The name under which `fetch` leaves the jar."""
        return f"{self.name}-{self.version}.jar"


def read_jars(path: Path) -> list[Jar]:
    """Read `GROUP ORG:NAME:VERSION [SHA256]` lines; `#` starts a comment."""
    jars = []
    for line in path.read_text().splitlines():
        fields = line.partition("#")[0].split()
        if fields:
            group, coordinates, *rest = fields
            organisation, name, version = coordinates.split(":")
            jars.append(Jar(group, organisation, name, version, *rest))
    return jars


def ivy_jar() -> Path:
    """The Ivy that pyspark ships.

    Raises JarError when this interpreter has no pyspark.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarError("pyspark, which ships Ivy, is not installed here: pip install -r docker/requirements/tools.lock")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def sha256_of(path: Path) -> str:
    """The hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def retrieved(jars: Sequence[Jar], transitive: bool, exclude: Iterable[str] = ()) -> Iterator[list[tuple[Jar, Path]]]:
    """Let Ivy resolve `jars`, and yield each artifact with its file, in a folder that the end of the block removes.

    Raises JarError with the end of Ivy's report when an artifact cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="jars-") as work:
        yield _retrieve(Path(work), jars, transitive, exclude)


def _retrieve(work: Path, jars: Sequence[Jar], transitive: bool, exclude: Iterable[str]) -> list[tuple[Jar, Path]]:
    dependencies = "\n".join(
        f"<dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.version)}"
        f' conf="default->{"runtime,master" if transitive else "master"}" transitive="{str(transitive).lower()}"/>'
        for jar in jars
    )
    # Versions in jars.in win over those of dependencies.
    overrides = "\n".join(
        f"<override org={quoteattr(jar.organisation)} module={quoteattr(jar.name)} rev={quoteattr(jar.version)}/>"
        for jar in jars
    )
    excludes = "\n".join(
        f"<exclude org={quoteattr(entry.split(':')[0])} module={quoteattr(entry.split(':')[1])}/>" for entry in exclude
    )
    descriptor = work / "ivy.xml"
    descriptor.write_text(
        '<ivy-module version="2.0"><info organisation="faultline" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}{excludes}{overrides}</dependencies></ivy-module>"
    )
    files = work / "files"
    # Ivy's own cache is kept out of the user's home: a build must not depend on its content.
    command = ["java", f"-Divy.default.ivy.user.dir={work / 'ivy'}", "-jar", str(ivy_jar()), "-ivy", str(descriptor)]
    command += ["-retrieve", f"{files}/{RETRIEVE_PATTERN}", "-confs", "default", "-types", "jar", "bundle", "-warn"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-25:])
        raise JarError(f"Ivy could not fetch {len(jars)} jars (is the network reachable?):\n{tail}")
    found = []
    for path in sorted(files.glob("*.jar")):
        organisation, name, version = path.name.removesuffix(".jar").split("__")
        found.append((Jar(jars[0].group, organisation, name, version), path))
    return found


def lock() -> None:
    """Resolve every group of jars.in and write jars.lock, sorted, with hashes."""
    roots = read_jars(ROOTS)
    locked: list[Jar] = []
    for group in sorted({jar.group for jar in roots}):
        wanted = [jar for jar in roots if jar.group == group]
        with retrieved(wanted, transitive=True, exclude=PROVIDED.get(group, ())) as found:
            locked += [Jar(group, jar.organisation, jar.name, jar.version, sha256_of(path)) for jar, path in found]
    lines = ["# Written by `python faultline/packages/jars.py lock` from jars.in: GROUP COORDINATES SHA256"]
    lines += [f"{jar.group} {jar.coordinates} {jar.sha256}" for jar in sorted(locked)]
    LOCK.write_text("\n".join(lines) + "\n")


def pin(path: Path) -> None:
    """Write the hash of each jar behind its name in a list of single jars; comments stay."""
    hashes: dict[str, str] = {}
    for group in sorted({jar.group for jar in read_jars(path)}):
        with retrieved([each for each in read_jars(path) if each.group == group], transitive=False) as found:
            hashes |= {jar.coordinates: sha256_of(file) for jar, file in found}
    lines = []
    for line in path.read_text().splitlines():
        fields = line.partition("#")[0].split()
        if fields and fields[1] not in hashes:
            raise JarError(f"{fields[1]} was not delivered; {path.name} is not changed")
        lines.append(f"{fields[0]} {fields[1]} {hashes[fields[1]]}" if fields else line)
    path.write_text("\n".join(lines) + "\n")


def fetch(group: str, directory: Path, lock_file: Path = LOCK) -> None:
    """Put the group's jars into `directory`; correct existing files are kept.

    Raises JarError when a jar cannot be fetched or its hash differs from the lock.
    """
    locked = read_jars(lock_file)
    wanted = [jar for jar in locked if jar.group == group]
    if not wanted:
        raise JarError(f"{lock_file.name} has no group '{group}'; it has {sorted({jar.group for jar in locked})}")
    if unpinned := [jar.coordinates for jar in wanted if not jar.sha256]:
        raise JarError(f"{', '.join(unpinned)}: no hash; python faultline/packages/jars.py pin {lock_file} writes it")
    directory.mkdir(parents=True, exist_ok=True)
    missing = [
        jar
        for jar in wanted
        if not (directory / jar.file_name).is_file() or sha256_of(directory / jar.file_name) != jar.sha256
    ]
    if not missing:
        return
    with retrieved(missing, transitive=False) as found:
        fetched = {jar.coordinates: path for jar, path in found}
        for jar in missing:
            path = fetched.get(jar.coordinates)
            if path is None:
                raise JarError(
                    f"{jar.coordinates} was not delivered; run again, or check that this version still exists"
                )
            if sha256_of(path) != jar.sha256:
                raise JarError(
                    f"{jar.coordinates}: SHA-256 is {sha256_of(path)}, {lock_file.name} says {jar.sha256}; not used"
                )
            shutil.move(path, directory / jar.file_name)


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Resolve and fetch the jars that pip does not carry.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lock")
    fetch_parser = commands.add_parser("fetch")
    fetch_parser.add_argument("group")
    fetch_parser.add_argument("directory", type=Path)
    fetch_parser.add_argument("--lock", type=Path, default=LOCK, metavar="FILE", help="default: jars.lock")
    commands.add_parser("pin").add_argument("file", type=Path)
    arguments = parser.parse_args()
    # The folder of a fetch is removed then, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if arguments.command == "lock":
            lock()
        elif arguments.command == "pin":
            pin(arguments.file)
        else:
            fetch(arguments.group, arguments.directory, arguments.lock)
    except JarError as error:
        print(f"jars: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
