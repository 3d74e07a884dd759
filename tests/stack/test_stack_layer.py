"""The process layer on real services: two stacks side by side, lost keepers, interrupted starts, changed settings."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from faultline.settings import ROOT
from faultline.stack.home import MARKER, Home
from faultline.stack.processes import KEEPER, Process, of_stack
from faultline.waiting import wait_until
from tests.stack.children import ended_with_its_group, hearing_hangups
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900)]

LIMIT_SECONDS = 120.0
SERVICES = ("kafka", "jobmanager", "taskmanager", "generator", "spark", "page")


def processes(stack: RunningStack) -> list[Process]:
    marker = Home(stack.home).marker()
    return of_stack(marker.stack) if marker else []


def status(stack: RunningStack) -> dict[str, str]:
    report = json.loads(stack.script("status.sh", "--json", check=False).stdout)
    return {each["service"]: each["state"] for each in report["services"]}


def test_status_shows_services_job_batch_and_lag(stack: RunningStack) -> None:
    stack.wait_for_checkpoints(1)
    first = stack.home / "checkpoints" / "spark" / "visits_json" / "commits" / "0"
    wait_until(first.exists, "a batch of the synchronizer", seconds=300)
    report = stack.wait_until_well()
    assert {each["service"] for each in report["services"]} == set(SERVICES)
    assert report["flink_job"]["state"] == "RUNNING"
    assert report["synchronizer"]["batch"] >= 0
    assert report["behind"].keys() == {"spark", "flink"}
    assert stack.script("status.sh").stdout.splitlines()[-1] == "all is well"


@pytest.mark.full
def test_down_and_up_go_on_without_repeating(stack: RunningStack) -> None:
    newest = int(stack.job()["latest_checkpoint"])
    stack.script("down.sh")
    words = stack.script("up.sh").stderr
    restored = re.search(r"restoring from \S+/chk-(\d+)\n", words)
    assert restored, words
    assert int(restored[1]) >= newest
    stack.wait_for_checkpoints(2)
    assert stack.verdict("all", "--as-is")[0] == 0
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert (code, verdict["outcome"], verdict["source"]["outcome"]) == (0, "holds", "holds"), verdict


def test_a_killed_generator_leaves_a_true_ledger(stack: RunningStack) -> None:
    stack.script("generator_stop.sh")
    for _ in range(3):
        stack.script("generator_start.sh", "--rate", "0")
        stack.wait_for_records("visits", 2_000)
        stack.script("kill.sh", "generator")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict
    assert verdict["source"]["records"]["acknowledged"] > 6_000
    stack.script("generator_start.sh")


def test_each_folder_has_a_marker_and_a_foreign_wipe_is_refused(stack: RunningStack, tmp_path: Path) -> None:
    assert all((folder / MARKER).is_file() for folder in Home(stack.home).folders())
    precious = tmp_path / "output" / "precious"
    precious.parent.mkdir()
    precious.write_text("x")
    other = RunningStack(tmp_path, "local")
    assert "no folder is removed" in other.script("down.sh", "--wipe").stderr
    assert precious.exists()
    stack.require_all_running()


def test_stopping_and_wiping_by_the_other_backend_is_refused(stack: RunningStack) -> None:
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        pytest.skip("no container engine answers")
    for flags in ([], ["--wipe"]):
        refused = stack.script("down.sh", *flags, "--backend", "compose", check=False)
        assert refused.returncode == 2
        command = " ".join(["scripts/down.sh", *flags, "--backend", "local"])
        assert f"is on backend local; {command} ends it" in refused.stderr
    stack.require_all_running()


def test_killed_keepers_change_nothing(stack: RunningStack) -> None:
    keepers = [each for each in processes(stack) if each.service.startswith(KEEPER)]
    assert keepers
    for keeper in keepers:
        os.kill(keeper.pid, signal.SIGKILL)
    stack.require_all_running()
    stack.script("kill.sh", "taskmanager")
    assert status(stack)["taskmanager"] == "exited"
    stack.script("start.sh", "taskmanager")
    stack.require_all_running()


def test_a_lost_or_wrong_record_does_not_mislead(stack: RunningStack) -> None:
    records = stack.home / ".stack" / "run"
    # The pid of a process that is not ours: this one.
    (records / "generator.json").write_text(json.dumps({"pid": os.getpid()}))
    (records / "spark.json").unlink()
    assert status(stack)["spark"] == "running"
    assert status(stack)["generator"] == "exited"
    stack.script("generator_stop.sh")
    left = {each.service for each in processes(stack)}
    assert left and "generator" not in left
    stack.script("generator_start.sh")
    assert status(stack)["generator"] == "running"


def test_up_starts_what_is_missing_and_leaves_the_rest_alone(stack: RunningStack) -> None:
    before = {each.pid for each in processes(stack) if each.service == "kafka"}
    stack.script("kill.sh", "spark")
    stack.script("up.sh")
    stack.require_all_running()
    assert before and before <= {each.pid for each in processes(stack)}


def test_a_failed_up_leaves_healthy_services_alone(stack: RunningStack) -> None:
    stack.script("kill.sh", "spark")
    failed = stack.script("up.sh", check=False, settings={"SPARK_ARGS": "--nonsense"})
    assert failed.returncode == 2
    assert {name for name, state in status(stack).items() if state == "running"} == set(SERVICES) - {"spark"}
    stack.script("up.sh")
    stack.require_all_running()


def test_a_changed_setting_reaches_the_next_start_and_up_names_it(stack: RunningStack) -> None:
    changed = {"SPARK_TRIGGER": "2 seconds"}
    words = stack.script("up.sh", settings=changed).stderr
    assert "spark runs with other settings (SPARK_TRIGGER is 5 seconds, now 2 seconds)" in words
    stack.script("spark_stop.sh")
    stack.script("spark_start.sh", settings=changed)
    environ = Path(
        f"/proc/{next(each.pid for each in processes(stack) if each.service == 'spark')}/environ"
    ).read_bytes()
    assert b"STACK_SPARK_TRIGGER=2 seconds" in environ.split(b"\0")


def test_a_running_service_refuses_flags_and_a_running_job_a_restore(stack: RunningStack) -> None:
    refused = stack.script("generator_start.sh", "--visits-per-second", "1", check=False)
    assert refused.returncode == 2
    assert "generator is running already and cannot take --visits-per-second 1" in refused.stderr
    refused = stack.script("flink_restore.sh", "latest", check=False)
    assert refused.returncode == 2
    assert "is RUNNING already" in refused.stderr and "restoring" not in refused.stderr


def test_status_names_a_job_that_completes_no_checkpoint(stack: RunningStack) -> None:
    """A frozen broker: the job cannot commit its transactions, and no checkpoint ends."""
    stack.script("pause.sh", "kafka")

    def old() -> bool:
        report = json.loads(stack.script("status.sh", "--json", check=False).stdout)
        return any("has completed no checkpoint for" in problem for problem in report["problems"])

    try:
        wait_until(old, "a problem", seconds=LIMIT_SECONDS)
    finally:
        stack.script("resume.sh", "kafka")
    stack.wait_until_well()


def test_foreign_variables_are_named_and_not_used(stack: RunningStack) -> None:
    stack.environment["KAFKA_BOOTSTRAP"] = "prod.example:9092"
    try:
        words = stack.script("status.sh", check=False).stderr
    finally:
        del stack.environment["KAFKA_BOOTSTRAP"]
    assert "KAFKA_BOOTSTRAP=prod.example:9092 is not used" in words


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.full),
        pytest.param(signal.SIGHUP, marks=pytest.mark.full),
    ],
    ids=lambda number: number.name,
)
def test_an_interrupted_up_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    with RunningStack(tmp_path, "local") as second:
        with hearing_hangups():
            process = subprocess.Popen(
                [str(ROOT / "scripts" / "up.sh")], env=second.environment, stderr=subprocess.PIPE, text=True
            )
        try:
            wait_until(lambda: bool(processes(second)), "the first service", seconds=LIMIT_SECONDS)
            for _ in range(2):
                process.send_signal(number)
            _, words = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
            with process:
                pass
        assert process.returncode == 128 + number, words
        assert processes(second) == []
        assert second.script("status.sh", check=False).returncode == 1


def test_a_killed_command_of_the_job_names_its_service(stack: RunningStack) -> None:
    words = [str(ROOT / "scripts" / "flink_status.sh"), "--wait-checkpoints", "1000000", "--wait-seconds", "300"]
    script = subprocess.Popen(
        words, env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    with ended_with_its_group(script):

        def asking() -> list[psutil.Process]:
            try:
                below = psutil.Process(script.pid).children(recursive=True)
                return [each for each in below if "flink_job.status" in each.cmdline()]
            except psutil.NoSuchProcess:
                # A child that looks at the version of Python ends at once.
                return []

        wait_until(lambda: bool(asking()), "the command", seconds=60)
        asking()[0].kill()
        printed = script.communicate(timeout=60)
    assert (script.returncode, printed[0]) == (137, "")
    assert "flink_status.sh: flink_job.status was killed before its end: jobmanager" in printed[1]
    assert "scripts/logs.sh jobmanager" in printed[1]


def problems(stack: RunningStack) -> str:
    return "; ".join(json.loads(stack.script("status.sh", "--json", check=False).stdout)["problems"])


@pytest.mark.full
def test_status_names_a_job_that_fails_again_and_again(stack: RunningStack) -> None:
    stack.wait_until_well()
    for _ in range(3):
        stack.script("kill.sh", "taskmanager")
        stack.script("start.sh", "taskmanager")
        wait_until(lambda: stack.job()["running_tasks"] == stack.job()["tasks"], "the job", seconds=LIMIT_SECONDS)
    # A restart that still takes slots of the killed TaskManager fails once more.
    failed = re.search(r"the Flink job failed (\d+) times in two minutes: ", problems(stack))
    assert failed
    assert int(failed[1]) >= 3
    stack.wait_until_well()


@pytest.mark.full
def test_status_names_a_pipeline_that_falls_behind(stack: RunningStack) -> None:
    """A synchronizer that runs and commits nothing: 3,000 visits are minutes of the generator's usual rate."""
    stack.wait_until_well()
    stack.script("spark_stop.sh")
    stack.script("spark_start.sh", "--hold-batch", "next")
    stack.script("exec.sh", "generator", "python", "-m", "generator", "--total", "3000", "--rate", "0")
    wait_until(lambda: "spark is behind by " in problems(stack), "a problem", seconds=LIMIT_SECONDS)
    stack.script("spark_stop.sh")
    stack.script("spark_start.sh")
    stack.wait_until_well()


@pytest.mark.full
def test_two_stacks_side_by_side_and_neither_stops_the_other(stack: RunningStack, tmp_path: Path) -> None:
    with RunningStack(tmp_path, "local") as second:
        second.script("up.sh")
        second.require_all_running()
        second.script("down.sh", "--wipe")
        assert processes(second) == []
        assert not (tmp_path / "output").exists()
    stack.require_all_running()


def test_down_ends_every_process(stack: RunningStack) -> None:
    stack.script("pause.sh", "generator")
    stack.script("down.sh")
    assert processes(stack) == []
    assert (stack.home / "checkpoints" / "flink").is_dir()
