"""Holding a batch between its offsets and its commit."""

from pathlib import Path

from faultline.settings import Settings
from spark_job.hold import Hold
from spark_job.options import parse


def hold(home: Path, flag: str, next_batch: int) -> Hold:
    options = parse(["--hold-batch", flag], Settings(environ={"STACK_HOME": str(home)}))
    options.notes.mkdir(parents=True, exist_ok=True)
    made = Hold.of(options, next_batch)
    assert made is not None
    return made


def test_a_run_without_a_hold_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    options = parse([], Settings(environ={"STACK_HOME": str(tmp_path)}))
    left = [Path(f"{options.checkpoint}.{name}") for name in ("held", "release")]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("13")
    assert Hold.of(options, 14) is None
    assert not any(file.exists() for file in left)


def test_a_number_or_the_next_batch(tmp_path: Path) -> None:
    assert hold(tmp_path, "3", 7).batch == 3
    assert hold(tmp_path, "next", 7).batch == 7


def test_marks_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    first = hold(tmp_path, "3", 0)
    first.held.touch()
    first.release.touch()
    hold(tmp_path, "3", 0)
    assert not first.held.exists()
    assert not first.release.exists()
