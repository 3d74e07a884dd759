"""The main walkthrough on Compose, with a real container engine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.compose, pytest.mark.timeout(2400)]

SERVICES = ("kafka", "generator", "spark", "jobmanager", "taskmanager")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningStack, str]]:
    """The stack after scripts/demo.sh on Compose, with what it printed on stdout."""
    with RunningStack(tmp_path_factory.mktemp("compose"), "compose") as stack:
        yield stack, stack.script("demo.sh").stdout


def containers(stack: RunningStack) -> dict[str, str]:
    """Container id of each service that runs."""
    found = {}
    for service in SERVICES:
        done = subprocess.run(
            ["docker", "ps", "--quiet", "--no-trunc", "--filter", f"label=com.docker.compose.service={service}"],
            capture_output=True,
            text=True,
            check=True,
        )
        for container in done.stdout.split():
            mounts = inspect(container, "{{range .Mounts}}{{.Source}} {{end}}{{.HostConfig.PortBindings}}")
            if str(stack.home) in mounts or stack.kafka_port in mounts:
                found[service] = container
    return found


def inspect(container: str, template: str) -> str:
    """One field of `docker inspect`."""
    command = ["docker", "inspect", "--format", template, container]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_walkthrough_ends_in_two_verdicts_that_hold(demo: tuple[RunningStack, str]) -> None:
    _, table = demo
    assert "spark: HOLDS" in table
    assert "flink: HOLDS" in table
    assert "source: HOLDS" in table


def test_findings_are_written_to_a_folder_of_the_host(demo: tuple[RunningStack, str], tmp_path: Path) -> None:
    stack, _ = demo
    stack.script("verdict.sh", "all", "--dump", str(tmp_path / "found"))
    assert (tmp_path / "found" / "flink.lost.jsonl").read_text(encoding="utf-8") == ""


def test_no_service_runs_as_root_or_beyond_loopback(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    running = containers(stack)
    assert {"kafka", "spark", "jobmanager", "taskmanager"} <= running.keys()
    for service, container in running.items():
        user = subprocess.run(
            ["docker", "exec", container, "id", "-u"], capture_output=True, text=True, check=True
        ).stdout.strip()
        assert user != "0", service
        ports = inspect(
            container, "{{range $port, $bound := .HostConfig.PortBindings}}{{(index $bound 0).HostIp}} {{end}}"
        )
        assert set(ports.split()) <= {"127.0.0.1"}, service


def test_what_containers_wrote_can_be_removed(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    stack.script("down.sh", "--wipe")
    assert not (stack.home / "checkpoints" / "flink").exists()
    assert not (stack.home / "output").exists()
