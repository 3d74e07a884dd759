"""Docs that cannot lie: the commands of the pages, typed in the order printed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.children import ended_with_its_group
from tests.stack.running_stack import RunningStack
from tests.tree import commands

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1800)]
SETTINGS = {"FLINK_CHECKPOINTS_RETAINED": "100"}
"""On a slow machine chk-2 must still be there when its turn comes."""

COMMAND = re.compile(r"`(scripts/[a-z_]+\.sh[^`]*)`")
CELL = re.compile(rf"\s*({COMMAND.pattern}(, )?)+\s*")
"""A cell that has commands and nothing else."""


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


# First: the verdict must not see what other steps have repeated on purpose.
def test_the_live_demo(stack: RunningStack) -> None:
    path = commands_in_tables("README.md", "Ten minutes")
    assert path[:2] == ["scripts/up.sh", "scripts/demo.sh"]
    assert path[-2:] == ["scripts/verdict.sh all --as-is", "scripts/down.sh"]
    # The stack is up; test_main_walkthrough.py types the demo.
    for command in path[2:-1] + commands_in_tables("README.md", "Live demo"):
        if command == "scripts/inspect.sh checkpoints/flink":
            stack.wait_for_checkpoints(1)
        assert type_it(stack, command) == 0, command


@pytest.mark.full
def test_the_steps_of_the_tutorials(stack: RunningStack) -> None:
    typed = commands_in_tables("docs/coming_from_the_tutorials.md", "Flink")
    assert typed[0] == "scripts/flink_submit.sh"
    assert "scripts/flink_restore.sh chk-2" in typed
    for command in typed:
        if command == "scripts/down.sh --wipe":
            break
        if command == "scripts/flink_cancel.sh":
            # Windows that are committed after chk-2.
            stack.wait_for_records("visit_windows", 1)
            stack.wait_for_checkpoints(2)
        code = type_it(stack, command)
        if command == "scripts/verdict.sh flink":
            # They are repeated.
            again, verdict = stack.verdict("flink")
            assert (verdict["lost"], verdict["unexpected"]) == (0, 0)
            assert verdict["duplicated"] > 0
            assert code == again == 1
        else:
            # `up` has submitted the job already.
            assert code == (2 if command == "scripts/flink_submit.sh" else 0), command


@pytest.mark.full
def test_the_restore_of_a_job_with_one_more_aggregate(stack: RunningStack) -> None:
    page = commands("docs/changing_the_flink_job.md")
    # Its last block, from the inspector's answer to the console.
    typed = page[next(number for number, command in enumerate(page) if "one_more_aggregate" in command) :]
    assert [command.split()[0] for command in typed[1:]] == [
        "scripts/flink_cancel.sh", "scripts/flink_restore.sh", "scripts/consume.sh",
    ]  # fmt: skip
    stack.script("generator_start.sh", check=False)
    stack.wait_for_checkpoints(1)
    for command in typed:
        assert type_it(stack, command) == 0, command
