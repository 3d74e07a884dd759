"""Docs that cannot lie: the commands of the pages, typed in the order printed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.settings import ROOT
from stack.waiting import wait_until
from tests.stack.children import ended_with_its_group
from tests.stack.running_stack import RunningStack
from tests.unit.test_docs import PAGES, commands

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

# Commands of blocks that other tests type, or that a test cannot: each with its reason.
ELSEWHERE = {
    "scripts/demo.sh": "test_main_walkthrough.py",
    "scripts/test.sh": "it runs this test",
    "scripts/check.sh": "scripts/test.sh runs it",
    "scripts/sbom.sh": "test_sbom.py",
    "scripts/walkthroughs": "test_labs.py, and tests/unit/test_walkthroughs.py for the list",
    "scripts/devices_file_stream.sh": "test_labs.py",
    "docker-compose": "test_compose.py",
    "benchmarks/": "minutes to hours; the page says which run its figures are of",
    "docker ": "needs a registry of images",
    "pipx ": "needs a list of vulnerabilities",
    "trivy ": "needs a list of vulnerabilities",
    "scripts/faults.sh": "test_faults.py",
    "scripts/soak.sh": "test_soak.py",
    "scripts/page.sh": "tests/unit/test_page_replay.py",
    "scripts/deploy.sh": "tests/unit/test_deploy.py and test_deploy_sizing.py",
    "kubectl ": "needs a Kubernetes cluster",
    "scripts/up.sh": "test_stack_layer.py, test_spares.py, test_three_brokers.py, test_spark_workers.py, "
    "test_cluster_profile.py",
    "scripts/down.sh": "every test of a stack ends with it",
    "scripts/consume.sh": "below",
    "scripts/inspect.sh": "below, and test_inspector_against.py",
    "scripts/transactions.sh": "below, and test_transactions.py",
}
COMMAND = re.compile(r"`(scripts/[a-z_]+\.sh[^`]*)`")
CELL = re.compile(rf"\s*({COMMAND.pattern}(, )?)+\s*")
"""A cell that has commands and nothing else."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    # On a slow machine chk-2 must still be there when its turn comes.
    settings = {"FLINK_CHECKPOINTS_RETAINED": "100"}
    with RunningStack(tmp_path_factory.mktemp("docs"), "local", **settings) as running:
        running.script("up.sh")
        yield running


def commands_in_tables(page: str, heading: str) -> list[str]:
    """Commands of the tables below a heading, in order."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [cell for line in section.splitlines() if line.startswith("|") for cell in line.split("|")]
    return [command for cell in cells if CELL.fullmatch(cell) for command in COMMAND.findall(cell)]


def type_it(stack: RunningStack, command: str) -> int:
    """Run a command as typed in the home of the stack's checkpoints; one that follows a topic gets a Ctrl-C."""
    words = shlex.split(command)
    output = Path(stack.home / "typed")
    with output.open("wb") as file:
        process = subprocess.Popen(
            [str(ROOT / words[0]), *words[1:]], cwd=stack.home, env=stack.environment, stdin=subprocess.DEVNULL,
            stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    with ended_with_its_group(process):
        follows = words[0] == "scripts/consume.sh"
        if follows:
            wait_until(lambda: b"window_start" in output.read_bytes(), f"output of {command}", seconds=300)
            # As a terminal does: to all processes of the group.
            os.killpg(process.pid, signal.SIGINT)
        code = process.wait(timeout=600)
    said = output.read_text(encoding="utf-8", errors="replace")
    print(f"$ {command}\n{said}")
    assert "Traceback" not in said
    return 0 if follows else code


def test_every_command_of_a_block_is_typed_somewhere() -> None:
    found = {command for page in PAGES for command in commands(page)}
    plain = {re.sub(r"^([A-Z_]+=\S+ )+", "", command) for command in found}
    assert {command for command in plain if not command.startswith(tuple(ELSEWHERE))} == set()


@pytest.mark.full
def test_the_steps_of_the_tutorials(stack: RunningStack) -> None:
    typed = commands_in_tables("docs/coming_from_the_tutorials.md", "Flink")
    assert typed[0] == "scripts/flink_submit.sh"
    assert "scripts/flink_restore.sh chk-2" in typed
    for command in typed:
        if command == "scripts/down.sh --wipe":
            break
        code = type_it(stack, command)
        # `up` has submitted the job already. If more than two checkpoints were complete, chk-2 repeats windows.
        allowed = {"scripts/flink_submit.sh": {2}, "scripts/verdict.sh flink": {0, 1}}.get(command, {0})
        assert code in allowed, command


def test_the_live_demo(stack: RunningStack) -> None:
    stack.script("generator_start.sh", check=False)
    typed = commands_in_tables("README.md", "Live demo")
    assert "scripts/kill.sh taskmanager" in typed
    assert "scripts/verdict.sh all --as-is" in typed
    for command in typed:
        if command == "scripts/inspect.sh checkpoints/flink":
            stack.wait_for_checkpoints(1)
        # The verdict may still see what the steps before have repeated.
        allowed = {"scripts/verdict.sh all --as-is": {0, 1}}.get(command, {0})
        assert type_it(stack, command) in allowed, command
