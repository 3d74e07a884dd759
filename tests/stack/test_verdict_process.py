"""The verdict as a process: its exit code is the outcome's, and a killed one leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from faultline.settings import ROOT
from faultline.verdict.loading import PARALLEL_RECORDS
from faultline.waiting import wait_until
from tests.judge.flink_world import placed
from tests.stack.children import hearing_hangups
from tests.stack.test_verdict_readers import Stack, ends_of, stack, world

__all__ = ["stack"]
pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

STREAMS = {
    "its reader closes the pipe at once": "| true",
    "its reader wants one line": "| head -1 >/dev/null",
    "stdout is full": ">/dev/full",
    "stdout is closed": ">&-",
    "stderr is closed": "2>&- >/dev/null",
    "stderr is full": "2>/dev/full >/dev/null",
    "both are closed": ">&- 2>&-",
}


def environment(stack: Stack) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | stack.settings


@pytest.fixture
def judged(stack: Stack, request: pytest.FixtureRequest) -> tuple[Stack, int]:
    """A stack whose windowing job is right, or lost a window; with the exit code of its verdict."""
    source, outputs = world()
    stack.send_source(source)
    stack.commit_group(ends_of(source))
    stack.send_outputs(outputs if request.param else replace(outputs, windows=placed(outputs.windows[1:])))
    return stack, 0 if request.param else 1


@pytest.mark.parametrize(("judged", "flag"), [(True, ""), (False, "--json")], indirect=["judged"])
def test_the_exit_code_is_that_of_the_outcome_wherever_the_report_goes(judged: tuple[Stack, int], flag: str) -> None:
    stack, code = judged
    for name, redirection in STREAMS.items():
        command = f"{sys.executable} -m faultline.verdict flink {flag} {redirection}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", command], env=environment(stack), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (name, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("judged", [False], indirect=True)
def test_findings_that_cannot_be_written_are_refused_before_and_old_ones_are_gone(
    judged: tuple[Stack, int], tmp_path: Path
) -> None:
    stack, _ = judged
    code, _ = stack.verdict("flink", "--dump", str(tmp_path / "found"))
    assert code == 1
    assert (tmp_path / "found" / "flink.lost.jsonl").read_text()
    process = stack.start_verdict("flink", "--dump", "/dev/null/x")
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (2, "")
    assert stderr == "verdict: --dump /dev/null/x cannot be written: Not a directory; choose another folder\n"
    stack.commit_group({0: 1, 1: 1})
    stack.settings["STACK_KAFKA_BOOTSTRAP"] = "127.0.0.1:9"
    code, _ = stack.verdict("flink", "--dump", str(tmp_path / "found"))
    assert code == 2
    assert not (tmp_path / "found" / "flink.lost.jsonl").exists()


@pytest.mark.parametrize("judged", [True], indirect=True)
def test_ledgers_and_notes_that_cannot_be_read_are_unknown(judged: tuple[Stack, int]) -> None:
    stack, _ = judged
    (stack.home / "ledger").mkdir()
    # Not by its mode: root reads every folder.
    (stack.home / "ledger" / stack.visits).write_text("")
    code, verdict = stack.verdict("source")
    assert code == 2
    assert "the ledgers in" in str(verdict["reason"]) and "Not a directory" in str(verdict["reason"])
    (stack.home / "ledger" / stack.visits).unlink()
    (stack.home / "checkpoints").mkdir()
    (stack.home / "checkpoints" / "flink").write_text("")
    code, verdict = stack.verdict("flink")
    assert code == 2
    assert "cannot be read: Not a directory" in str(verdict["reason"])


def children_of(pid: int) -> list[int]:
    """The processes below a process."""
    direct = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(child) for child in direct] + [each for child in direct for each in children_of(int(child))]


def fill(stack: Stack) -> None:
    """Make a topic so large that the verdict reads it in several processes."""
    producer = Producer({"bootstrap.servers": stack.broker.bootstrap, "queue.buffering.max.messages": 1_000_000})
    value = json.dumps({"visit_id": "a", "event_time": "2026-01-01T00:00:00.000Z"}).encode()
    for number in range(2 * PARALLEL_RECORDS):
        producer.produce(stack.visits, value, b"a", partition=number % 2, timestamp=1_767_225_600_000)
        if number % 50_000 == 0:
            producer.poll(0)
    producer.flush()
    stack.commit_group({0: PARALLEL_RECORDS, 1: PARALLEL_RECORDS})


def test_a_killed_verdict_leaves_no_process_and_no_folder(stack: Stack, tmp_path: Path) -> None:
    fill(stack)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    stack.settings["TMPDIR"] = str(temporary)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with hearing_hangups():
            process = stack.start_verdict("flink")
        below = wait_until(partial(readers_of, process.pid), "processes that read", seconds=120)
        assert list(temporary.iterdir())
        begin = time.monotonic()
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode in (-number, 128 + number)
        assert time.monotonic() - begin < 30
        assert stdout == ""
        if number != signal.SIGKILL:
            assert stderr.splitlines()[-1] == "verdict: interrupted"
            assert "Traceback" not in stderr
        wait_until(lambda: not list(temporary.iterdir()), "no folder", seconds=30)
        wait_until(partial(are_gone, below), "no process", seconds=30)


def are_gone(pids: list[int]) -> bool:
    """Return whether none of these processes is left."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def readers_of(pid: int) -> list[int]:
    """The processes below a verdict that reads in several; empty while it does not."""
    below = children_of(pid)
    return below if len(below) > 2 else []


@pytest.mark.parametrize("judged", [True], indirect=True)
def test_a_signal_at_any_moment_is_neither_a_holding_verdict_nor_a_violated_one(
    judged: tuple[Stack, int],
) -> None:
    stack, _ = judged
    for moment in range(12):
        process = stack.start_verdict("flink")
        time.sleep(moment * 0.15)
        process.send_signal(signal.SIGINT if moment % 2 else signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
        ended = process.returncode
        assert ended in (-2, -15, 130, 143) or (ended == 0 and "flink: HOLDS" in stdout), (moment, ended, stderr)
        assert "Traceback" not in stderr
