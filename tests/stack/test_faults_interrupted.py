"""A fault that is interrupted at any moment is repaired, the stack is as it was, and nothing watches it any more."""

from __future__ import annotations

import random
import signal
import subprocess

import psutil
import pytest

from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.children import hearing_hangups
from tests.stack.running_stack import RunningStack
from tests.tiers import SEED, examples

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

TRIES = 6
ROW = "taskmanager-freeze"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LIMIT_SECONDS = 600
_ROW_SECONDS = 60


def test_what_is_broken_is_repaired_after_an_interrupt(stack: RunningStack) -> None:
    chance = random.Random(SEED)
    for number in range(examples(TRIES)):
        # The first one comes while the TaskManager is frozen, the others at any moment.
        seconds = chance.uniform(0, _ROW_SECONDS)
        with hearing_hangups():
            process = subprocess.Popen(
                [str(ROOT / "scripts" / "faults.sh"), "run", ROW],
                env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True,
            )  # fmt: skip
        try:
            if number == 0:
                wait_until(lambda: stack.states()["taskmanager"] == "paused", "the fault", seconds=_LIMIT_SECONDS)
            else:
                with_time_out(process, seconds)
            process.send_signal(SIGNALS[number % len(SIGNALS)])
            out, words = process.communicate(timeout=_LIMIT_SECONDS)
        finally:
            process.kill()
            process.wait()
        assert "Traceback" not in words, words
        # The row may have ended before the signal; the first one had not.
        passed = number > 0 and f"{ROW}  passed" in out
        assert process.returncode == 130 or passed, (number, seconds, process.returncode, words)
        stack.require_all_running()
        stack.wait_for_checkpoints(1)


def watchers(stack: RunningStack) -> list[psutil.Process]:
    results = str(stack.home / "results")
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if any(word.startswith(results) for word in each.info["cmdline"] or ())
    ]


def test_a_killed_matrix_leaves_no_watcher(stack: RunningStack) -> None:
    process = subprocess.Popen(
        [str(ROOT / "scripts" / "faults.sh"), "run", ROW],
        env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: len(watchers(stack)) > 1, "the watchers", seconds=_LIMIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not watchers(stack), "the end of the watchers", seconds=30)


def with_time_out(process: subprocess.Popen[str], seconds: float) -> None:
    """Return after some time, or when the process has ended."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return
