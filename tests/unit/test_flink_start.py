"""The start of a JobManager or TaskManager: what Flink is asked, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_job import start

JAVA = Path("/java")


def test_flink_is_asked_once_for_each_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"FLINK_CONF_DIR": str(tmp_path / "conf"), "FLINK_HOME": "/flink"}
    asked: list[str] = []

    def memory(_java: Path, _environ: dict[str, str], _flags: list[str], question: str) -> tuple[list[str], list[str]]:
        asked.append(question)
        return [f"-Xmx{len(asked)}m"], ["-D", f"size={len(asked)}m"]

    monkeypatch.setattr(start, "memory", memory)
    first = start.memory_of("a: 1", JAVA, environ, [], "tm")
    assert first == (["-Xmx1m"], ["-D", "size=1m"])
    assert start.memory_of("a: 1", JAVA, environ, [], "tm") == first
    assert asked == ["tm"]
    for configuration, java, environment in (
        ("a: 2", JAVA, environ), ("a: 2", Path("/other"), environ), ("a: 2", JAVA, environ | {"FLINK_HOME": "/newer"}),
    ):  # fmt: skip
        before = len(asked)
        assert start.memory_of(configuration, java, environment, [], "tm") != first
        assert len(asked) == before + 1
    (tmp_path / "memory.json").write_text("", encoding="utf-8")
    start.memory_of("a: 1", JAVA, environ, [], "tm")
    assert len(asked) == 5
