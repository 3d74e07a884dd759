"""The one look-up of Java: JAVA_HOME before PATH, as Spark, Flink and Kafka look for it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path


class NoJavaError(Exception):
    """No Java was found; the message says where."""


def find_java(environ: Mapping[str, str]) -> Path:
    """Find the program `java`, of whatever version. Raises NoJavaError."""
    home = environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else environ.get("PATH"))
    if found is None:
        raise NoJavaError(f"JAVA_HOME={home} has no bin/java" if home else "Java was not found on PATH")
    return Path(found)
