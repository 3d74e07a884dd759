"""Make the environment of another release of Spark, from its own locks; nothing else fetches one.

Usage: python -m faultline.packages.release spark 4.3      in the tools environment; some minutes and 1 GB, once

The packages are listed in spark-4.3.lock, the jars of its Kafka source in releases.jars.

It goes to the artifacts' folder as `spark-4.3`.
Exit codes: 0 done, 1 it could not be made, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

from pyspark.version import __version__ as spark_version

from faultline.locks import BUILDING, LOCKS, spark_releases
from faultline.packages.jars import JarError, fetch
from faultline.settings import artifacts
from faultline.stack.lock import exclusive

JARS = LOCKS / "releases.jars"
THIS_RELEASE = ".".join(spark_version.split(".")[:2])
"""The release of the Spark in this environment."""


def folder_of(engine: str, release: str) -> Path:
    """Return the folder of a release's environment, whether it exists or not."""
    return artifacts() / f"{engine}-{release}"


def python_of(engine: str, release: str) -> Path:
    """Return the interpreter of a release: that of the tools environment where it has the release itself."""
    if f"{engine}-{release}" not in spark_releases():
        return Path(sys.executable)
    return folder_of(engine, release) / "bin" / "python"


def make(engine: str, release: str) -> int:
    """Make the environment; returns pip's exit code."""
    folder = folder_of(engine, release)
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
    for lock in ("build", f"{engine}-{release}"):
        command = [*pip, "-r", str(LOCKS / f"{lock}.lock")]
        isolation = [] if lock == "build" else ["--no-build-isolation"]
        done = subprocess.run([*command, *isolation], env={**BUILDING, **os.environ}, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


def fetch_jars(engine: str, release: str) -> None:
    """Put the jars of a release below its environment, and the project's own beside them.

    Raises JarError when one cannot be fetched or differs from the lock.
    """
    folder = folder_of(engine, release) / "artifacts" / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    for group in ("kafka", "web_guard"):
        (folder / group).unlink(missing_ok=True)
        (folder / group).symlink_to(artifacts().resolve() / "jars" / group)
    fetch(f"{engine}-{release}", folder / engine, JARS)


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make the environment of another release of Spark.")
    parser.add_argument("engine", choices=("spark",))
    parser.add_argument("release", choices=[name.partition("-")[2] for name in spark_releases()])
    arguments = parser.parse_args()
    folder = folder_of(arguments.engine, arguments.release)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.with_name(f"{folder.name}.lock"), f"another program makes {folder}; waiting for it ..."):
        if not _is_made(folder):
            if make(arguments.engine, arguments.release) != 0:
                print(f"release: {folder} could not be made, see above", file=sys.stderr)
                return 1
            try:
                fetch_jars(arguments.engine, arguments.release)
            except JarError as error:
                print(f"release: {error}", file=sys.stderr)
                return 1
            _stamp(folder).write_bytes(_made_from(folder))
    print(folder)
    return 0


def _stamp(folder: Path) -> Path:
    return folder / "made-from"


def _made_from(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in (LOCKS / "build.lock", LOCKS / f"{folder.name}.lock", JARS))


def _is_made(folder: Path) -> bool:
    return _stamp(folder).exists() and _stamp(folder).read_bytes() == _made_from(folder)


if __name__ == "__main__":
    sys.exit(main())
