"""Holding a batch between its offsets and its commit."""

import threading
import time
from pathlib import Path

import pytest

from faultline.settings import Settings
from faultline.waiting import wait_until
from spark_job.hold import Hold
from spark_job.options import parse


def hold(home: Path, flag: str, next_batch: int) -> Hold:
    options = parse(["--hold-batch", flag], Settings(environ={"STACK_HOME": str(home)}))
    options.notes.mkdir(parents=True, exist_ok=True)
    made = Hold.of(options, next_batch)
    assert made is not None
    return made


def test_no_flag_no_hold(tmp_path: Path) -> None:
    assert Hold.of(parse([], Settings(environ={"STACK_HOME": str(tmp_path)})), 0) is None


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


def test_marks_stand_beside_the_checkpoint(tmp_path: Path) -> None:
    made = hold(tmp_path, "3", 0)
    assert made.held == tmp_path / "checkpoints/spark/visits_json.held"
    assert made.release == tmp_path / "checkpoints/spark/visits_json.release"


def test_another_batch_goes_on_at_once(tmp_path: Path) -> None:
    made = hold(tmp_path, "3", 0)
    made.wait(2)
    assert not made.held.exists()


@pytest.mark.timeout(30)
def test_the_batch_waits_for_the_release_and_says_so_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = hold(tmp_path, "3", 0)
    tasks = [threading.Thread(target=made.wait, args=(3,)) for _ in range(2)]
    for task in tasks:
        task.start()
    wait_until(made.held.exists, "the hold", seconds=20, every=0.01)
    time.sleep(0.2)
    assert all(task.is_alive() for task in tasks)
    made.release.touch()
    for task in tasks:
        task.join(timeout=10)
    assert not any(task.is_alive() for task in tasks)
    assert not made.held.exists()
    assert capfd.readouterr().err == "synchronizer: batch 3 held between offsets/3 and commits/3\n"
