"""Golden data: checkpoints and runs as the engines wrote them, in archives that each test run unpacks once.

Usage: python -m tests.golden.archives FOLDER      pack FOLDER into tests/golden/<name of FOLDER>.tar.xz

| archive      | command that records it                                                                     |
|--------------|---------------------------------------------------------------------------------------------|
| spark-X.Y    | python -m tests.golden.record spark, and python tests/golden/record_spark_formats.py record |
| flink-X.Y    | python -m tests.golden.record flink                                                         |
| flink-job    | the one above; FOLDER has <job id>/chk-N of a stack's checkpoints/flink                     |
| flink-others | python -m tests.golden.record hybrid; the rest the one above, of Flink 2.2.1 with other     |
|              | connectors, backends and places; FOLDER has each                                            |
| runs         | python -m tests.golden.record_runs                                                          |
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ARCHIVES = Path(__file__).resolve().parent
# Checkpoints hold absolute paths; this one is the same on every machine.
SCRATCH = Path("/tmp/faultline-golden")
_SUFFIX = ".tar.xz"
_MODIFIED_S = 1_767_225_600
"""2026-01-01: the modification time of every file, so that the same files give the same archive."""


@cache
def golden(name: str) -> Path:
    """Unpack an archive, and return its folder. Every test of the run reads it: one that changes files copies them."""
    run = _folder_of_the_run()
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (run / name).exists():
            _unpack(name, run)
    return run / name


def releases(engine: str) -> list[Path]:
    """Return the folders of all releases of an engine, spark or flink."""
    return [golden(path.name.removesuffix(_SUFFIX)) for path in sorted(ARCHIVES.glob(f"{engine}-[0-9]*{_SUFFIX}"))]


@cache
def _folder_of_the_run() -> Path:
    """Make the folder that the processes of a test run share; the last one of them removes it."""
    folder = Path(tempfile.gettempdir()) / f"golden-{os.environ.get('PYTEST_XDIST_TESTRUNUID') or uuid.uuid4().hex}"
    folder.mkdir(exist_ok=True)
    in_use = os.open(folder, os.O_RDONLY)
    fcntl.flock(in_use, fcntl.LOCK_SH)
    atexit.register(_leave, folder, in_use)
    return folder


def _leave(folder: Path, in_use: int) -> None:
    try:
        fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    shutil.rmtree(folder)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield SCRATCH, which is empty then, to one process after the other; the end removes it."""
    with SCRATCH.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(SCRATCH, ignore_errors=True)
        SCRATCH.mkdir()
        try:
            yield SCRATCH
        finally:
            shutil.rmtree(SCRATCH)


def _unpack(name: str, target: Path) -> None:
    with tarfile.open(ARCHIVES / f"{name}{_SUFFIX}") as archive:
        archive.extractall(target, filter="fully_trusted")


@contextmanager
def recorded(name: str) -> Iterator[Path]:
    """Yield a folder with what an archive holds, if there is one, to record into; then write the archive again."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        if (ARCHIVES / f"{name}{_SUFFIX}").exists():
            _unpack(name, Path(scratch))
        folder.mkdir(exist_ok=True)
        yield folder
        pack(folder, ARCHIVES)


def pack(folder: Path, target: Path) -> Path:
    """Write the archive of a folder into another one; the same files give the same bytes, with the same liblzma."""
    path = target / f"{folder.name}{_SUFFIX}"
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file()):
            # Nothing else of the file's status: neither owner nor mode.
            member = tarfile.TarInfo(file.relative_to(folder.parent).as_posix())
            member.size, member.mtime = file.stat().st_size, _MODIFIED_S
            with file.open("rb") as content:
                archive.addfile(member, content)
    return path


if __name__ == "__main__":
    pack(Path(sys.argv[1]).resolve(), ARCHIVES)
