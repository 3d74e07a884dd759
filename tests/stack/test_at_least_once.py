"""What exactly-once is worth: the same kill without it repeats windows, and the verdict says so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.stack.running_stack import RunningStack
from tests.stack.turns import in_turn

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800), *in_turn(0)]

CHECKPOINT_MS = 25_000
"""Longer than two windows: a window is written, and seen, between a checkpoint and the kill."""
ATTEMPTS = 5


def test_kill_under_at_least_once_repeats_windows(tmp_path: Path) -> None:
    settings = {"FLINK_MODE": "at-least-once", "FLINK_CHECKPOINT_INTERVAL_MS": str(CHECKPOINT_MS)}
    with RunningStack(tmp_path, "local", **settings) as stack:
        stack.script("up.sh")
        # A window that was written after the newest checkpoint is what the kill repeats.
        for _ in range(ATTEMPTS):
            checkpoint = stack.wait_for_checkpoints(1)["latest_checkpoint"]
            written = stack.record_count("visit_windows")
            while stack.record_count("visit_windows") == written:
                time.sleep(0.2)
            stack.script("kill.sh", "taskmanager")
            stack.script("start.sh", "taskmanager")
            restored = stack.wait_for_checkpoints(1)["restored_from"]
            if (restored or "").endswith(f"/chk-{checkpoint}"):
                break
        stack.script("generator_stop.sh")
        stack.script("settle.sh")
        code, verdict = stack.verdict("flink")
    assert (code, verdict["outcome"]) == (1, "violated")
    assert verdict["duplicated"] > 0
    assert verdict["lost"] == 0
    assert verdict["examples"]
