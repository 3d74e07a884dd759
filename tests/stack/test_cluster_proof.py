"""The proof on the profile `cluster`: its rows of the fault matrix, the core lessons, those that rescale it, and random
faults with both verdicts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faultline.faults.rows.cluster import ROWS
from tests.stack.running_stack import RunningStack
from tests.stack.shown import require_all_proven

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]
SETTINGS = {"PROFILE": "cluster"}

LESSONS = (
    # It also cancels and restores the job, and kills the synchronizer inside a batch.
    "demo.sh",
    "walkthroughs/04_kill_a_taskmanager.sh",
    "walkthroughs/17_rescale_the_job.sh",
    "walkthroughs/18_more_partitions.sh",
    # Last: it has a worker more.
    "walkthroughs/19_more_executors.sh",
)
"""Those that go another way on a cluster; test_walkthroughs.py runs the others."""
OWN_SETTINGS = {"walkthroughs/19_more_executors.sh": {"SPARK_WORKERS": "3"}}


# First, while no other cluster is up.
def test_random_faults_leave_both_verdicts_whole(tmp_path: Path) -> None:
    with RunningStack(tmp_path, "local") as running:
        done = running.script("soak.sh", "--profile", "cluster", "--minutes", "5", check=False)
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    assert re.fullmatch(r"seed \d+\nHOLDS after \d+ faults(, \d+ more did not apply)?\n", done.stdout)


# Before the lessons, which rescale the cluster. It has what the rows ask for, so nothing of it is removed.
@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_a_row_that_only_a_cluster_can_promise_passes(stack: RunningStack, name: str) -> None:
    stack.faults(name)
    stack.require_all_running()


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_proves_its_sentences(stack: RunningStack, name: str) -> None:
    done = stack.script(name, check=False, settings=OWN_SETTINGS.get(name))
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    require_all_proven(name, done.stdout)
    stack.require_all_running()
