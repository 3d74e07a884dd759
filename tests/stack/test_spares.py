"""A stack with a spare TaskManager and a standby JobManager: another job, down and up, and back to one of each.

The rows of the matrix show that the spare and the standby take over.
"""

from __future__ import annotations

import pytest

from flink_job.rest import call
from tests.stack.running_stack import RunningStack

# In CI the matrix and the walkthroughs kill the only ones.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
SETTINGS = {"FLINK_TASKMANAGERS": "2", "FLINK_JOBMANAGERS": "2"}

LIMIT_SECONDS = 120


def rest(stack: RunningStack) -> str:
    ports = ("FLINK_UI_PORT", "FLINK_STANDBY_UI_PORT")
    return ",".join(f"http://127.0.0.1:{stack.environment[f'STACK_{port}']}" for port in ports)


def test_another_job_is_submitted_to_the_same_cluster(stack: RunningStack) -> None:
    # The client asks ZooKeeper who leads, under the id of the cluster.
    job_id = stack.script("flink_submit.sh", "--job", "classic").stdout.strip()
    assert call(rest(stack), f"/jobs/{job_id}")["state"] == "RUNNING"
    stack.script("flink_cancel.sh", "--job", "classic")


def test_it_goes_on_after_down_and_up_and_holds(stack: RunningStack) -> None:
    before = stack.job()
    stack.script("down.sh")
    up = stack.script("up.sh")
    assert "the job is already active" in up.stderr
    assert stack.job()["job_id"] == before["job_id"]
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict


def test_a_jobmanager_alone_continues_from_the_newest_checkpoint(stack: RunningStack) -> None:
    stack.script("down.sh")
    stack.environment |= {"STACK_FLINK_JOBMANAGERS": "1", "STACK_FLINK_TASKMANAGERS": "1"}
    up = stack.script("up.sh")
    assert "the job continues from" in up.stderr
    assert not (stack.home / "checkpoints" / "flink" / "high-availability").exists()
    refused = stack.script("kill.sh", "jobmanager-2", check=False)
    assert refused.returncode == 2
    assert "STACK_FLINK_JOBMANAGERS=2 scripts/up.sh adds it" in refused.stderr
