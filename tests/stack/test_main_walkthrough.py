"""The main walkthrough on the local backend, and what a user does next with the stack that it leaves up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.settings import ROOT, read_env_file
from faultline.stack.services import mebibytes
from tests.stack.running_stack import RunningStack
from tests.stack.shown import require_all_proven

pytestmark = [pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningStack, str, str]]:
    """The stack after scripts/demo.sh, with what it printed on stdout and stderr."""
    with RunningStack(tmp_path_factory.mktemp("walkthrough"), "local") as stack:
        done = stack.script("demo.sh")
        yield stack, done.stdout, done.stderr


def test_walkthrough_ends_in_two_verdicts_that_hold(demo: tuple[RunningStack, str, str]) -> None:
    _, table, words = demo
    require_all_proven("demo.sh", table)
    assert "spark: HOLDS" in table
    assert "flink: HOLDS" in table
    assert "source: HOLDS" in table
    assert re.search(r"^ pending( +0){3} ", table, re.MULTILINE), table
    assert re.search(r"synchronizer: batch \d+ \(re-run\): ", words), words
    assert "stop it with: scripts/down.sh" in words.splitlines()[-1]


def test_a_file_taken_out_of_the_output_is_a_loss(demo: tuple[RunningStack, str, str], tmp_path: Path) -> None:
    stack, _, _ = demo
    part = max((stack.home / "output").rglob("part-*"), key=lambda path: path.stat().st_size)
    lines = len(part.read_bytes().splitlines())
    aside = part.rename(tmp_path / part.name)
    code, verdict = stack.verdict("spark")
    aside.rename(part)
    assert (code, verdict["outcome"], verdict["lost"]) == (1, "violated", lines), verdict


def test_second_up_says_that_it_is_up(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    # The demo has stopped the generator: the first up starts it.
    stack.script("up.sh")
    assert "every service was up already" in stack.script("up.sh").stderr
    stack.script("generator_stop.sh")


def test_submitting_while_the_job_runs_is_refused(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    refused = stack.script("flink_submit.sh", check=False)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "transactional ids" in refused.stderr


def test_restore_refuses_what_is_no_checkpoint_and_lists_what_is(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    # Looked up before the refusal: by its end the job may have completed another one.
    restorable = Path(stack.job()["latest_path"]).name
    refused = stack.script("flink_restore.sh", "chk-99999", check=False)
    assert refused.returncode != 0
    assert "chk-99999" in refused.stderr
    assert restorable in refused.stderr


def test_stack_fits_into_three_gibibytes(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    [total] = re.findall(r"^total +(\d+)$", stack.script("status.sh", check=False).stdout, re.MULTILINE)
    needed = mebibytes(read_env_file(ROOT / ".env"))
    assert 0 < int(total) < needed <= 3 * 1024


def test_settling_is_refused_while_the_generator_runs(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    stack.script("generator_start.sh")
    refused = stack.script("settle.sh", check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "scripts/generator_stop.sh" in refused.stderr
    stack.script("generator_stop.sh")


def test_taken_port_is_named_before_anything_starts(demo: tuple[RunningStack, str, str], tmp_path: Path) -> None:
    running, _, _ = demo
    port = running.kafka_port
    with RunningStack(tmp_path, "local", KAFKA_PORT=port) as second:
        refused = second.script("up.sh", check=False)
    assert refused.returncode == 2
    assert f"port {port}" in refused.stderr
    assert "KAFKA_PORT" in refused.stderr


def test_flags_that_make_no_sense_are_refused_before_the_start(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    stack.script("generator_stop.sh")
    refused = stack.script("generator_start.sh", "--rat", "5", check=False)
    assert refused.returncode == 2
    assert re.search(r"^generator: unrecognized arguments: --rat 5; .*$", refused.stderr, re.MULTILINE)
    assert re.search(r"^generator +exited ", stack.script("status.sh", check=False).stdout, re.MULTILINE)


def test_unknown_names_are_refused_with_the_known_ones(demo: tuple[RunningStack, str, str]) -> None:
    stack, _, _ = demo
    for script, argument, known in (
        ("kill.sh", "mainframe", "taskmanager"),
        ("consume.sh", "visit", "visit_windows"),
    ):
        refused = stack.script(script, argument, check=False)
        assert refused.returncode == 2
        assert argument in refused.stderr
        assert known in refused.stderr
        assert "Traceback" not in refused.stderr
