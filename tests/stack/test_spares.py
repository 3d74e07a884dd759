"""A spare TaskManager and a standby JobManager take over, without any command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from faultline.waiting import wait_until
from flink_job.rest import active_job, call, working_taskmanager
from tests.stack.running_stack import RunningStack

# In CI the matrix and the walkthroughs kill the only ones.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
SETTINGS = {"FLINK_TASKMANAGERS": "2", "FLINK_JOBMANAGERS": "2"}

LIMIT_SECONDS = 120


def rest(stack: RunningStack) -> str:
    ports = ("FLINK_UI_PORT", "FLINK_STANDBY_UI_PORT")
    return ",".join(f"http://127.0.0.1:{stack.environment[f'STACK_{port}']}" for port in ports)


def busy_taskmanager(stack: RunningStack) -> str:
    """The service that runs the job's tasks, by the name under which it registered."""
    job = active_job(rest(stack), "visit_windows")
    assert job is not None
    return working_taskmanager(rest(stack), job["jid"])


def wait_for_a_restored_job(stack: RunningStack, restored: Any) -> None:
    """Wait until the job was restored from another checkpoint than `restored`, and has completed one since."""

    def done() -> bool:
        status = stack.script("flink_status.sh", check=False)
        if status.returncode:
            # Between two leaders there is no answer.
            return False
        job = json.loads(status.stdout)
        return job["restored_from"] not in (None, restored) and job["latest_path"] not in (None, job["restored_from"])

    wait_until(done, "a checkpoint of the restored job", seconds=LIMIT_SECONDS)


def test_another_job_is_submitted_to_the_same_cluster(stack: RunningStack) -> None:
    # The client asks ZooKeeper who leads, under the id of the cluster.
    job_id = stack.script("flink_submit.sh", "--job", "classic").stdout.strip()
    assert call(rest(stack), f"/jobs/{job_id}")["state"] == "RUNNING"
    stack.script("flink_cancel.sh", "--job", "classic")


def test_the_spare_taskmanager_takes_over(stack: RunningStack) -> None:
    wait_until(lambda: len(call(rest(stack), "/taskmanagers")["taskmanagers"]) == 2, "both", seconds=LIMIT_SECONDS)
    before, killed = stack.job(), busy_taskmanager(stack)
    stack.script("kill.sh", killed)
    wait_for_a_restored_job(stack, before["restored_from"])
    assert stack.job()["job_id"] == before["job_id"]
    assert busy_taskmanager(stack) == ({"taskmanager", "taskmanager-2"} - {killed}).pop()
    stack.script("start.sh", killed)


def test_the_job_survives_the_leading_jobmanager(stack: RunningStack) -> None:
    before = stack.job()
    # One of them leads: after both were killed in turn, the job has had another leader.
    for name in ("jobmanager", "jobmanager-2"):
        stack.script("kill.sh", name)
        stack.wait_for_checkpoints(1)
        stack.script("start.sh", name)
    wait_for_a_restored_job(stack, before["restored_from"])
    assert stack.job()["job_id"] == before["job_id"]


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
