"""What a machine lacks is one line before anything starts: what, why, and the next step."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def preflight(call: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one check of scripts/lib/preflight.sh."""
    sources = "source scripts/lib/common.sh; source scripts/lib/preflight.sh"
    settings = "BIND_ADDRESS=127.0.0.1 PYTHON_VERSION=3.11 JAVA_VERSION=17"
    return subprocess.run(
        ["/bin/bash", "-c", f"set -euo pipefail; {settings}; {sources}; {call}"],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def assert_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr


def other_java(folder: Path) -> str:
    """Return a PATH on which `java` answers with another version; only what it answers is looked at."""
    java = folder / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_no_java(tmp_path: Path) -> None:
    assert_one_line(preflight("check_java", PATH=str(tmp_path)), "Java was not found", "JAVA_HOME", "--backend compose")


def test_another_java(tmp_path: Path) -> None:
    assert_one_line(preflight("check_java", PATH=other_java(tmp_path)), "Java 11", "install Java 17")


def test_no_python(tmp_path: Path) -> None:
    assert_one_line(preflight("check_python", PATH=str(tmp_path)), "Python 3.11", "--backend compose")


def test_too_little_memory() -> None:
    assert_one_line(preflight("check_memory 99999999"), "99999999 MiB", "close other programs")


def test_too_little_disk(tmp_path: Path) -> None:
    assert_one_line(preflight(f"check_disk {tmp_path} 999999999"), "999999999 MiB", str(tmp_path), "make room")


@pytest.mark.parametrize("name", ["ROOT", "ARTIFACTS", "STACK_HOME"])
def test_a_blank_in_the_path(tmp_path: Path, name: str) -> None:
    paths = {"ROOT": "/r", "ARTIFACTS": "/a", "STACK_HOME": "/s", name: str(tmp_path / "my projects")}
    assert_one_line(preflight("check_host", **paths), "my projects", "blank", "move it")


def test_a_machine_that_has_all() -> None:
    done = preflight(f"check_path {ROOT}; check_java; check_python; check_memory 1; check_disk / 1")
    assert (done.returncode, done.stderr) == (0, "")
