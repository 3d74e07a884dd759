"""The synchronizer killed at random moments in the middle of a write: the verdict never accuses it."""

from __future__ import annotations

import contextlib
import random
import time
from pathlib import Path

import pytest

from faultline.stack.home import Home
from faultline.stack.processes import Process, end, of_stack
from faultline.verdict.spark.sink_log import read_sink_log
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack
from tests.tiers import SEED

# In CI, a row of the fault matrix and a soak kill it.
pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

KILLS = 20
LIMIT_SECONDS = 600


def uncommitted(output: Path) -> dict[str, int]:
    """Sizes of the files that the sink's log does not name: a write that is under way, or leftovers."""
    while True:
        # A compaction deletes the logs before it.
        with contextlib.suppress(FileNotFoundError):
            log = read_sink_log(output)
            named = {entry.name for entry in log.entries} if log else set()
            return {file.name: file.stat().st_size for file in output.glob("part-*") if file.name not in named}


def wait_for_a_write(output: Path) -> None:
    """Wait until a file that the log does not name yet appears or grows."""
    before = uncommitted(output)

    def grows() -> bool:
        return any(size > before.get(name, 0) for name, size in uncommitted(output).items())

    wait_until(grows, f"a write to {output}", seconds=LIMIT_SECONDS, every=0.01)


def kill_synchronizer(stack: RunningStack) -> None:
    """SIGKILL its processes at once: scripts/kill.sh takes longer than a write."""
    marker = Home(stack.home).marker()
    assert marker is not None
    mark = marker.stack
    assert synchronizer(mark), "no synchronizer runs"
    # Until the last thread of the JVM has ended, it may write.
    end(lambda: synchronizer(mark), "the synchronizer")


def synchronizer(mark: str) -> list[Process]:
    """Processes of the synchronizer, without its keeper."""
    return [each for each in of_stack(mark) if each.service == "spark"]


def require_whole(stack: RunningStack) -> None:
    """Require a verdict that accuses nobody."""
    code, verdict = stack.verdict("spark", "--as-is")
    assert (code, verdict["lost"], verdict["duplicated"], verdict["unexpected"]) == (0, 0, 0, 0), verdict


def test_a_synchronizer_killed_while_it_writes_is_never_accused(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    output = tmp_path / "output" / "visits_json"
    with RunningStack(tmp_path, "local", SPARK_TRIGGER="1 second") as stack:
        stack.script("up.sh", settings={"GENERATOR_ARGS": "--rate 500 --unparsable-percent 1"})
        # The synchronizer alone: then its writes take long enough.
        stack.script("stop.sh", "taskmanager")
        stack.script("stop.sh", "jobmanager")
        # Before the first commit the answer is unknown.
        first = tmp_path / "checkpoints" / "spark" / "visits_json" / "commits" / "0"
        wait_until(first.exists, str(first), seconds=LIMIT_SECONDS)
        done = 0
        leftovers: set[str] = set()
        # On a slow machine a kill may come after the write: then kill some more times.
        while done < KILLS or (not leftovers and done < 10 * KILLS):
            done += 1
            wait_for_a_write(output)
            time.sleep(chance.random() * 0.05)
            kill_synchronizer(stack)
            leftovers |= uncommitted(output).keys()
            # A leftover stays: each verdict sees those of all kills before it, beside a write or not.
            if done % 2:
                require_whole(stack)
            stack.script("spark_start.sh")
            wait_for_a_write(output)
            if not done % 2:
                require_whole(stack)
        stack.script("generator_stop.sh")
        code, verdict = stack.verdict("spark", "--wait", "300")
    assert code == 0, verdict
    # Otherwise no kill was in the middle of a write.
    assert leftovers
