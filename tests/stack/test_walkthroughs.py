"""The walkthroughs on a stack: each proves its sentences, after any other one, and leaves the stack as it was."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.children import ended_with_its_group
from tests.stack.running_stack import RunningStack
from tests.stack.shown import require_all_proven
from tests.tiers import SEED

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]

ON_THE_STACK = sorted(path.name for path in (ROOT / "scripts" / "walkthroughs").glob("0*.sh"))
ON_THE_STACK += [
    "10_kill_the_synchronizer.sh", "17_rescale_the_job.sh", "18_more_partitions.sh", "20_one_more_aggregate.sh",
    "21_one_more_field.sh",
]  # fmt: skip


def shuffled() -> list[str]:
    """All of them and the demo, which test_main_walkthrough.py runs on a new stack, in an order of the seed."""
    every = ["demo.sh", *(f"walkthroughs/{name}" for name in ON_THE_STACK)]
    return random.Random(SEED).sample(every, len(every))


@pytest.mark.parametrize("script", shuffled())
def test_it_proves_its_sentences(stack: RunningStack, script: str) -> None:
    done = stack.script(script, check=False)
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    require_all_proven(script, done.stdout)
    assert "FAILED" not in done.stdout
    assert "Traceback" not in done.stderr
    # It had found the stack whole, with a generator that ran.
    stack.require_all_running()
    assert stack.job()["state"] == "RUNNING"


def test_interrupted_it_leaves_a_stack_that_works(stack: RunningStack, tmp_path: Path) -> None:
    words = tmp_path / "words"
    with words.open("wb") as file:
        walk = subprocess.Popen(
            [str(ROOT / "scripts" / "walkthroughs" / "04_kill_a_taskmanager.sh")],
            env=stack.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    with ended_with_its_group(walk):
        wait_until(lambda: "taskmanager was killed" in words.read_text(), "the kill", seconds=300)
        # As a terminal does: to all processes of the group.
        os.killpg(walk.pid, signal.SIGINT)
        assert walk.wait(timeout=600) == 130, words.read_text()
    assert "starting again what it stopped" in words.read_text()
    stack.require_all_running()
    # Until the TaskManager has registered, the job restarts again and again.
    assert stack.wait_for_checkpoints(1)["state"] == "RUNNING"


def test_on_an_output_that_is_wrong_it_does_not_begin(stack: RunningStack) -> None:
    # Without a checkpoint every window is written again.
    stack.wait_for_checkpoints(4)
    stack.script("flink_cancel.sh")
    stack.script("flink_submit.sh")
    stack.wait_for_checkpoints(2)
    refused = stack.script("walkthroughs/10_kill_the_synchronizer.sh", check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the output of this stack is already wrong" in refused.stderr
    assert "starting again" not in refused.stderr
    stack.script("reset.sh")
    # The next test expects a stack that is up, as this one did.
    stack.script("up.sh")
