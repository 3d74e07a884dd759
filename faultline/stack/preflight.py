"""Requirements of the machine, checked before anything starts: one line for each problem."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from faultline.java import NoJavaError, find_java
from faultline.ports import refusal
from faultline.stack.children import is_beside
from faultline.stack.errors import StackError
from faultline.waiting import attempts

ARTIFACTS_MIB, IMAGES_MIB, RUN_MIB = 5120, 10_240, 1024
"""Disk space for environments and jars while they are unpacked, for images with their build layers, and for a run."""
TAKEN_SECONDS = 3.0
"""A port is taken when it stays so for this long."""

_SAFE = re.compile(r"[\w./+@=~-]*")
_JAVA_VERSION = re.compile(r'version "(\d+)')
_OR_DOCKER = "or use Docker: --backend compose"


def require_java(version: str, environ: Mapping[str, str]) -> Path:
    """Find Java of that version. Raises StackError when there is none, or another version."""
    try:
        java = find_java(environ)
    except NoJavaError as error:
        raise StackError(f"{error}; install a Java {version} runtime or set JAVA_HOME, {_OR_DOCKER}") from None
    where = f"JAVA_HOME={environ['JAVA_HOME']}" if environ.get("JAVA_HOME") else f"the java on PATH, {java}"
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, start_new_session=is_beside()
        )
    except OSError as error:
        raise StackError(f"{where} does not start ({error.strerror}); install Java {version}, {_OR_DOCKER}") from None
    found = _JAVA_VERSION.search(done.stderr + done.stdout)
    if found is None or found[1] != version:
        raise StackError(
            f"{where} is Java {found[1] if found else 'of an unknown version'}; Spark, Flink and Kafka run on Java "
            f"{version} here: install it and set JAVA_HOME, {_OR_DOCKER}"
        )
    return java


def find_python(version: str, environ: Mapping[str, str]) -> Path:
    """Find a Python of that version for the environments: this one, or one on PATH. Raises StackError."""
    here = Path(sys.executable)
    if "{}.{}".format(*sys.version_info[:2]) == version:
        return here
    for name in (f"python{version}", "python3", "python"):
        path = shutil.which(name, path=environ.get("PATH"))
        if path and _python_version(path) == version:
            return Path(path)
    raise StackError(f"Python {version} was not found on PATH; install it, {_OR_DOCKER}")


def _python_version(path: str) -> str:
    try:
        done = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip()


def check_paths(paths: Mapping[str, Path]) -> None:
    """Refuse paths that start scripts of the engines, lists with commas or URIs do not support. Raises StackError."""
    for name, path in paths.items():
        bad = sorted({character for character in str(path) if not _SAFE.fullmatch(character)})
        if bad:
            what = "a space" if " " in bad else " and ".join(repr(each) for each in bad)
            raise StackError(
                f"the path of {name}, '{path}', contains {what}, which the engines do not support; "
                "use a path of letters, digits and ./+@=~_-"
            )


def available_mebibytes() -> int | None:
    """Available memory; None when the system does not report it."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable: *(\d+) kB", text, re.MULTILINE)
    return int(found[1]) // 1024 if found else None


def check_memory(mebibytes: int) -> None:
    """Raise StackError when too little memory is available."""
    available = available_mebibytes()
    if available is not None and available < mebibytes:
        raise StackError(
            f"only {available} MiB of memory are available, the stack needs {mebibytes} MiB; close other programs first"
        )


def free_mebibytes(path: Path) -> int:
    """Free disk space at a path, or at its nearest parent that exists."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free >> 20


def check_disk(path: Path, mebibytes: int) -> None:
    """Raise StackError when too little disk space is free."""
    free = free_mebibytes(path)
    if free < mebibytes:
        raise StackError(f"only {free} MiB of disk are free at {path}, {mebibytes} MiB are needed; free space first")


def check_ports(address: str, names: Sequence[str], ports: Mapping[str, int]) -> None:
    """Raise StackError when a port is taken, or two are the same."""
    chosen: dict[int, str] = {}
    for name in names:
        port = ports[name]
        # 0 means any free port.
        if port and port in chosen:
            raise StackError(f"{name} and {chosen[port]} are both {port}; give one of them another port")
        chosen[port] = name
        # A killed service has its port until the last thread of its JVM has ended.
        if port and all(refusal(address, port) for _ in attempts(TAKEN_SECONDS)):
            raise StackError(
                f"port {port} on {address} is taken ({name}); stop what listens there, or move all ports: "
                "PORT_OFFSET=100 scripts/up.sh"
            )
