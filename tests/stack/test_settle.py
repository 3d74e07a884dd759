"""scripts/settle.sh on a stack: with the last window closed and all of it committed, nothing is pending."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from faultline.formats.visit import CLOSING_PREFIX, iso_time
from faultline.waiting import wait_until
from tests.stack.flink_accounts import read_all
from tests.stack.running_stack import RunningStack

# In CI every row of the matrix and the main walkthrough settle their stacks.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


def test_a_generator_that_runs_or_is_paused_is_refused(stack: RunningStack) -> None:
    for state in ("running", "paused"):
        if state == "paused":
            stack.script("pause.sh", "generator")
        refused = stack.script("settle.sh", check=False)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.count("\n") == 1
        assert f"the generator is {state}" in refused.stderr and "scripts/generator_stop.sh" in refused.stderr


def test_after_it_every_visit_is_in_a_window_that_is_over(stack: RunningStack) -> None:
    stack.script("generator_stop.sh")
    settled = stack.script("settle.sh")
    assert settled.stdout.startswith("settled: ") and settled.stdout.count("\n") == 1
    assert "close every window" in settled.stderr
    count = stack.record_count("visits")
    again = stack.script("settle.sh")
    assert again.stdout.count("\n") == 1
    assert "nothing is open" in again.stderr
    assert stack.record_count("visits") == count
    committed = [json.loads(value) for _, _, value, *_ in read_all(f"127.0.0.1:{stack.kafka_port}", "visit_windows")]
    # Each visit but the closing ones: they are in windows that are still open.
    assert sum(window["count"] for window in committed) == count - 4
    assert not any(window["visit_id"].startswith(CLOSING_PREFIX) for window in committed)


def test_the_next_generator_is_not_late_and_its_windows_close_too(stack: RunningStack) -> None:
    before = stack.record_count("visits")
    stack.script("generator_start.sh", "--rate", "0", "--event-rate", "10", "--total", "300")
    wait_until(lambda: stack.record_count("visits") >= before + 300, "300 visits", seconds=120)
    stack.script("generator_stop.sh")
    stack.script("settle.sh", "--wait", "300")
    assert stack.record_count("visits") == before + 300 + 4
    assert stack.record_count("visits_late") == 0
    files = sorted((stack.home / "ledger" / "visits").iterdir())
    # Two generators and two closings; the settling that sent nothing has no file.
    assert len(files) == 4


def test_a_visit_that_is_ahead_in_one_partition_leaves_no_window_open(stack: RunningStack) -> None:
    newest = max(timestamp for _, _, _, timestamp, _ in read_all(f"127.0.0.1:{stack.kafka_port}", "visits"))
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{stack.kafka_port}"})
    typed = json.dumps({"visit_id": "typed", "event_time": iso_time(newest + 60_000)})
    producer.produce("visits", typed.encode(), partition=0)
    producer.flush()
    settled = stack.script("settle.sh")
    assert "partition 0 is " in settled.stderr and " s ahead of the others" in settled.stderr
    code, verdict = stack.verdict("flink")
    assert (verdict["outcome"], verdict["pending"]) == ("holds", 0), verdict
    # It is in no ledger, which says nothing about the job.
    assert (code, verdict["source"]["outcome"], verdict["source"]["unexpected"]) == (1, "violated", 1)


def test_wipe_takes_the_ledger_along(stack: RunningStack) -> None:
    stack.script("down.sh", "--wipe")
    assert not (stack.home / "ledger").exists()
