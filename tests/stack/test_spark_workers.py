"""The synchronizer on a standalone cluster of two workers: it goes on without one of them, and without the master."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.request
from pathlib import Path
from typing import Any, TypeVar

import pytest

from faultline.command import CommandError
from faultline.probes.spark_application import application
from faultline.settings import Settings
from faultline.stack.home import Home
from faultline.stack.processes import of_stack
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
SETTINGS = {"SPARK_WORKERS": "2"}

LIMIT_SECONDS = 180
T = TypeVar("T")
SERVICES = ("spark-master", "spark-worker", "spark-worker-2", "spark")
PAGES = {
    "spark-master": "STACK_SPARK_MASTER_UI_PORT", "spark-worker": "STACK_SPARK_WORKER_UI_PORT",
    "spark-worker-2": "STACK_SPARK_WORKER_2_UI_PORT",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _two_batches(stack: RunningStack) -> None:
    stack.wait_for_batches(2)


def cluster(stack: RunningStack) -> dict[str, Any]:
    """Return the JSON answer of the master."""
    port = stack.environment[PAGES["spark-master"]]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/", timeout=30) as answer:
        return dict(json.loads(answer.read()))


def alive(stack: RunningStack) -> int:
    return sum(worker["state"] == "ALIVE" for worker in cluster(stack)["workers"])


def executors(stack: RunningStack) -> set[str]:
    """Hosts and ports of the driver's executors, by its own page."""
    found = application(Settings(stack.environment), "executors")
    return {each["hostPort"] for each in found if each["id"] != "driver"}


SILENT = (OSError, ValueError, CommandError)
"""A service that does not answer, as just after its start."""


def wait_for_executors(stack: RunningStack, count: int) -> None:
    wait_until(lambda: len(executors(stack)) == count, f"{count} executors", seconds=LIMIT_SECONDS, despite=SILENT)


def mark(stack: RunningStack) -> str:
    """Return the mark that the stack's processes carry."""
    marker = Home(stack.home).marker()
    assert marker is not None
    return marker.stack


def sockets(process: int) -> set[str]:
    """The sockets of a process, as its descriptors name them."""
    found = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(descriptor.readlink()))
    return found


def test_an_executor_runs_on_each_worker(stack: RunningStack) -> None:
    stack.require_all_running()
    found = cluster(stack)
    assert (found["status"], alive(stack), len(found["activeapps"])) == ("ALIVE", 2, 1)
    wait_for_executors(stack, 2)


def test_pages_refuse_foreign_pages(stack: RunningStack) -> None:
    for name, setting in PAGES.items():
        port = int(stack.environment[setting])
        for headers, status in (({}, 200), ({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 403)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            try:
                connection.request("GET", "/", headers=headers)
                assert connection.getresponse().status == status, (name, headers)
            finally:
                connection.close()


def test_only_loopback_is_listened_on(stack: RunningStack) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this reads Linux's table of connections")
    inodes = set()
    for process in of_stack(mark(stack)):
        if process.service.startswith("spark"):
            inodes |= sockets(process.pid)
    assert inodes
    # Listening (0A), of one of our processes, and not on 127.0.0.1.
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    open_to_others = [
        row[1] for row in rows
        if row[3] == "0A" and f"socket:[{row[9]}]" in inodes
        and not row[1].startswith(("0100007F:", "0000000000000000FFFF00000100007F:"))
    ]  # fmt: skip
    assert open_to_others == []


def test_batches_go_on_without_the_master_which_finds_all_again(stack: RunningStack) -> None:
    stack.script("kill.sh", "spark-master")
    stack.wait_for_batches(2)
    refused = stack.script("start.sh", "spark-worker-2", check=False)
    assert refused.returncode == 2
    assert "service spark-master is exited; start it with scripts/start.sh spark-master" in refused.stderr
    stack.script("start.sh", "spark-master")
    wait_until(lambda: cluster(stack)["status"] == "ALIVE", "the master", seconds=LIMIT_SECONDS, despite=SILENT)
    wait_until(lambda: alive(stack) == 2, "its workers", seconds=LIMIT_SECONDS, despite=SILENT)
    assert len(cluster(stack)["activeapps"]) == 1
    stack.wait_for_batches(2)


def test_fewer_executors_and_more_again(stack: RunningStack) -> None:
    stack.script("spark_stop.sh")
    refused = stack.script("spark_start.sh", "--executors", "3", check=False)
    assert refused.returncode == 2
    assert "--executors 3: there are 2 workers, with one executor each" in refused.stderr
    stack.script("spark_start.sh", "--executors", "1")
    stack.wait_for_batches(3)
    wait_for_executors(stack, 1)
    stack.script("spark_stop.sh")
    stack.script("spark_start.sh")
    wait_for_executors(stack, 2)


def test_a_killed_worker_leaves_no_executor_and_nothing_is_lost(stack: RunningStack) -> None:
    stack.script("kill.sh", "spark-worker-2")
    assert [each for each in of_stack(mark(stack)) if each.service == "spark-worker-2"] == []
    stack.script("start.sh", "spark-worker-2")
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict
