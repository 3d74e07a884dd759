"""The classic job, restored from its own checkpoint, and what the verdict says about it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from faultline.settings import ROOT
from tests.stack.flink_cluster import Cluster, newest_checkpoint, send

pytestmark = [pytest.mark.full]


def verdict(cluster: Cluster) -> dict[str, Any]:
    """Judge the classic job."""
    done = subprocess.run(
        [sys.executable, "-m", "faultline.verdict", "classic", "--json", "--wait", "60"],
        env=cluster.environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def test_the_verdict_names_what_the_classic_job_repeats_and_loses_after_a_restore(cluster: Cluster) -> None:
    for partition in (0, 1):
        send(cluster, partition, range(10), "written")
        send(cluster, partition, [22], "open")
        send(cluster, partition, [27], f"clock{partition}")
    job = cluster.submit("--job", "classic")
    cluster.drain(job, "STACK_CLASSIC_JOB_NAME")
    # A faultless pipeline so far.
    found = verdict(cluster)
    assert (found["outcome"], found["observed"], found["pending"]) == ("unknown", 1, 3), json.dumps(found, indent=1)
    assert cluster.module("flink_job.cancel", "--job", "classic").returncode == 0
    # The first visit after the restore is late: its window is written.
    send(cluster, 0, [5], "written")
    for partition in (0, 1):
        send(cluster, partition, [28], f"clock{partition}")
        send(cluster, partition, [60], f"clock{partition}")
    job = cluster.submit("--job", "classic", "--from", newest_checkpoint(cluster, job))
    cluster.drain(job, "STACK_CLASSIC_JOB_NAME")
    found = verdict(cluster)
    print(json.dumps(found, indent=1))
    assert found["outcome"] == "violated"
    assert found["duplicated"] == 1, found
    assert "written" in found["examples"][0]["text"]
