"""The start of a JobManager or TaskManager: how often Flink is asked for its memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from flink_job import start


def test_flink_is_asked_once_for_each_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    environ = os.environ | {"FLINK_CONF_DIR": str(conf), "FLINK_HOME": "/flink"}
    asked: list[str] = []

    def memory(_: Mapping[str, str], question: str) -> tuple[list[str], list[str]]:
        asked.append(question)
        return [f"-Xmx{len(asked)}m"], ["-D", f"size={len(asked)}m"]

    monkeypatch.setattr(start, "memory", memory)
    (conf / "config.yaml").write_text("a: 1\n", encoding="utf-8")
    first = start.memory_of(environ, "tm")
    assert first == (["-Xmx1m"], ["-D", "size=1m"])
    assert start.memory_of(environ, "tm") == first
    assert asked == ["tm"]
    (conf / "config.yaml").write_text("a: 2\n", encoding="utf-8")
    assert start.memory_of(environ, "tm")[0] == ["-Xmx2m"]
    assert start.memory_of(environ | {"FLINK_HOME": "/newer"}, "tm")[0] == ["-Xmx3m"]
    # Cut off by a crash.
    (tmp_path / "memory.json").write_text("", encoding="utf-8")
    assert start.memory_of(environ, "tm")[0] == ["-Xmx4m"]
