"""Processes are found by their mark, whatever happened to those that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.stack.errors import StackError
from faultline.stack.processes import KEEPER, Process, Program, end, keep, of_stack, send
from faultline.waiting import wait_until

ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
LIMIT_SECONDS = 30.0
FAMILY = "setsid sleep 1000 & echo ready; while :; do sleep 0.1; done"
"""A program with a child that has left its process group."""


class Started:
    """Processes that a test started: found by `mark`, ended at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.folder = folder
        self.keepers: list[subprocess.Popen[str]] = []

    def __call__(self, *command: str) -> subprocess.Popen[str]:
        """Start a command as the service `one`."""
        files = ["--log", str(self.folder / "log"), "--record", str(self.folder / "record")]
        self.keepers.append(keep([*files, *command], ENVIRON, self.mark, "one", self.folder))
        return self.keepers[-1]

    def family(self) -> list[Process]:
        """The command and its children."""
        return [process for process in of_stack(self.mark) if process.service == "one"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Started]:
    started = Started(tmp_path)
    yield started
    end(lambda: of_stack(started.mark), "what a test started")
    for keeper in started.keepers:
        keeper.wait(timeout=LIMIT_SECONDS)


def test_children_outside_of_the_group_are_found_and_ended(start: Started) -> None:
    keeper = start("bash", "-c", FAMILY)
    wait_until(lambda: len(start.family()) >= 3, "the family", seconds=LIMIT_SECONDS)
    assert [each.service for each in of_stack(start.mark) if each.pid == keeper.pid] == [f"{KEEPER}one"]
    end(start.family, "the family")
    keeper.wait(timeout=LIMIT_SECONDS)
    assert '"exit_code": -9' in (start.folder / "record").read_text()


def test_a_pid_that_another_process_has_now_gets_no_signal(start: Started) -> None:
    start("sleep", "1000")
    (found,) = start.family()
    send([replace(found, age_order=found.age_order - 1)], signal.SIGKILL)
    assert start.family() == [found]
    send([found], signal.SIGKILL)
    wait_until(lambda: not start.family(), "its end", seconds=LIMIT_SECONDS)


def test_a_process_that_executes_another_program_has_not_ended(start: Started) -> None:
    again = start.folder / "again"
    again.write_text('#!/bin/bash\nexec "$0"\n', encoding="utf-8")
    again.chmod(0o755)
    start(str(again))
    wait_until(lambda: bool(start.family()), "the process", seconds=LIMIT_SECONDS)
    looks = [[each.pid for each in start.family() if each.service == "one"] for _ in range(200)]
    assert looks == [looks[0]] * len(looks)


def test_a_program_that_does_not_exist_is_one_line(start: Started) -> None:
    with pytest.raises(StackError, match=r"one cannot be started: .*No such file"):
        start(str(start.folder / "absent"))


def test_a_long_log_is_copied_away_while_the_program_writes_on(start: Started) -> None:
    start("bash", "-c", "head -c 21000000 /dev/zero; while :; do echo on; sleep 0.2; done")
    log, copy = start.folder / "log", start.folder / "log.1"
    wait_until(copy.exists, "the copy", seconds=LIMIT_SECONDS)
    wait_until(lambda: 0 < log.stat().st_size < 1_000_000, "an empty log that goes on", seconds=LIMIT_SECONDS)
    assert copy.stat().st_size >= 21_000_000


def test_a_program_ends_with_its_block(tmp_path: Path) -> None:
    with Program(["bash", "-c", FAMILY], ENVIRON, tmp_path / "log", tmp_path) as program:
        program.wait_for(lambda: "ready" in program.words(), "its word", seconds=LIMIT_SECONDS)
        assert program.running
    assert not program.running


def test_a_program_ends_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    caller = f"""
import os, sys, time
from pathlib import Path
from faultline.stack.processes import Program
command = ["bash", "-c", "echo $$; exec sleep 1000"]
program = Program(command, dict(os.environ), Path({str(tmp_path / "log")!r}), Path("/"))
program.wait_for(lambda: bool(program.words()), "its pid", seconds=30)
print(program.words().strip(), flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", caller], env=ENVIRON, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
        finally:
            process.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the program", seconds=LIMIT_SECONDS)


def test_exit_codes_of_a_program(tmp_path: Path) -> None:
    with Program(["bash", "-c", "exit 7"], ENVIRON, tmp_path / "log", tmp_path) as program:
        assert program.wait(seconds=LIMIT_SECONDS) == 7
    with Program(["sleep", "1000"], ENVIRON, tmp_path / "log", tmp_path) as program:
        assert program.kill() == -signal.SIGKILL
    trap = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    with Program(["bash", "-c", trap], ENVIRON, tmp_path / "log", tmp_path) as program:
        program.wait_for(lambda: "ready" in program.words(), "its word", seconds=LIMIT_SECONDS)
        program.terminate()
        assert program.wait(seconds=LIMIT_SECONDS) == 5


def test_a_program_that_ends_too_early_says_why(tmp_path: Path) -> None:
    with (
        Program(["bash", "-c", "echo no jar; exit 3"], ENVIRON, tmp_path / "log", tmp_path) as program,
        pytest.raises(StackError, match=r"ended \(exit code 3\) before the port: no jar"),
    ):
        program.wait_for(lambda: False, "the port", seconds=LIMIT_SECONDS)
