"""Settings of a run are kept, read back, and never guessed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faultline.formats.run import (
    FLINK_RUN_FILE,
    FlinkRun,
    RunError,
    SparkRun,
    as_json,
    flink_run_of,
    flink_runs,
    read_run,
)
from faultline.settings import Settings


def test_a_run_is_read_back(tmp_path: Path) -> None:
    run = SparkRun("visits", "files", "output/visits_json", "checkpoints/spark/visits_json")
    file = tmp_path / "run.json"
    assert read_run(SparkRun, file) is None
    file.write_text(as_json(run), encoding="utf-8")
    assert read_run(SparkRun, file) == run


@pytest.mark.parametrize("text", ["", "{", "[]", '{"topic": "visits"}'])
def test_a_damaged_run_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"run\.json does not hold the settings of a run"):
        read_run(FlinkRun, file)


def test_runs_of_a_topic_are_listed_the_newest_last(tmp_path: Path) -> None:
    settings = Settings(environ={})
    for number, (job, windows) in enumerate((("b", "visit_windows"), ("a", "visit_windows"), ("c", "other"))):
        file = tmp_path / job / FLINK_RUN_FILE
        file.parent.mkdir()
        run = flink_run_of(Settings(environ={"STACK_VISIT_WINDOWS_TOPIC": windows}), job_id=job)
        file.write_text(as_json(run), encoding="utf-8")
        os.utime(file, (number, number))
    assert [run.job_id for _, run in flink_runs(tmp_path, settings.text("VISIT_WINDOWS_TOPIC"))] == ["b", "a"]
    assert flink_runs(tmp_path / "missing", "visit_windows") == []
