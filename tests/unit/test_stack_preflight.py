"""Requirements that a machine lacks, each in one line before anything starts: what, why, and the next step."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from faultline.stack import preflight
from faultline.stack.errors import StackError


def answering_java(folder: Path, version: str) -> Path:
    """Make a program that only answers `-version`, which is all that is checked."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.2\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    right, wrong = answering_java(tmp_path / "right", "17"), answering_java(tmp_path / "wrong", "21")
    environ = {"JAVA_HOME": str(right.parent.parent), "PATH": f"{wrong.parent}:/usr/bin:/bin"}
    assert preflight.require_java("17", environ) == right
    environ = {"JAVA_HOME": str(wrong.parent.parent), "PATH": f"{right.parent}:/usr/bin:/bin"}
    with pytest.raises(StackError, match=r"JAVA_HOME=.* is Java 21; .* run on Java 17"):
        preflight.require_java("17", environ)
    assert preflight.require_java("17", {"PATH": f"{right.parent}:/usr/bin:/bin"}) == right


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"Java was not found on PATH; .*JAVA_HOME.*--backend compose"):
        preflight.require_java("17", {"PATH": str(tmp_path)})
    with pytest.raises(StackError, match=r"JAVA_HOME=.* has no bin/java"):
        preflight.require_java("17", {"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


def test_no_python_of_the_version(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"Python 3\.4 was not found on PATH; .*--backend compose"):
        preflight.find_python("3.4", {"PATH": str(tmp_path)})


def test_too_little_memory_and_disk(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"99999999 MiB; close other programs"):
        preflight.check_memory(99_999_999)
    with pytest.raises(StackError, match=r"999999999 MiB are needed; free space"):
        preflight.check_disk(tmp_path / "not" / "there", 999_999_999)
    preflight.check_memory(1)
    preflight.check_disk(tmp_path, 1)


@pytest.mark.parametrize(
    ("folder", "named"),
    [("my projects", "a space"), ("a&b", "'&'"), ("50%", "'%'"), ("a|b", "'|'"), ("a:b", "':'"), ("a,b", "','")],
)
def test_a_path_that_engines_do_not_support(folder: str, named: str) -> None:
    with pytest.raises(StackError, match=r"the path of the home, '.*contains .*; use a path of letters") as refused:
        preflight.check_paths({"the home": Path("/home/me") / folder})
    assert named in str(refused.value)


def test_an_ordinary_path() -> None:
    preflight.check_paths({"the home": Path("/home/anna-lena/dev_2/faultline-0.1+x@y")})


def test_a_taken_port_is_named_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "TAKEN_SECONDS", 0.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StackError, match=rf"port {port} on 127\.0\.0\.1 is taken \(KAFKA_PORT\).*PORT_OFFSET"):
            preflight.check_ports("127.0.0.1", ["KAFKA_PORT"], {"KAFKA_PORT": port})


def test_a_port_that_becomes_free_is_not_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        freed = threading.Timer(0.3, taken.close)
        freed.start()
        preflight.check_ports("127.0.0.1", ["KAFKA_PORT"], {"KAFKA_PORT": taken.getsockname()[1]})
        freed.join()


def test_two_services_on_one_port_are_refused() -> None:
    with pytest.raises(StackError, match="FLINK_UI_PORT and KAFKA_PORT are both 1"):
        preflight.check_ports("127.0.0.1", ["KAFKA_PORT", "FLINK_UI_PORT"], {"KAFKA_PORT": 1, "FLINK_UI_PORT": 1})
