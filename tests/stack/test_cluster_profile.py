"""The profile `cluster` on both backends: up, judged, without its object store and with it again, and gone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from faultline.settings import read_env_file
from faultline.stack.home import Home
from faultline.stack.processes import of_stack
from faultline.stack.services import COUNTS, services
from faultline.stack.settings import load
from faultline.storage.objects import ObjectLocation, ObjectStore
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack
from tests.stack.secret import has_secret, require_in_no_process

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

LIMIT_SECONDS = 300
AWAY_CHECKPOINTS = 2
SETTINGS = load({}, {"PROFILE": "cluster"}, {}).values
SERVICES = [row.name for row in services(SETTINGS)]


@pytest.fixture(
    scope="module",
    params=[pytest.param("local"), pytest.param("compose", marks=pytest.mark.compose)],
)
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningStack, str]]:
    """The stack, and what its start said."""
    with RunningStack(tmp_path_factory.mktemp("cluster"), request.param) as running:
        said = running.script("up.sh", "--profile", "cluster").stderr
        running.wait_for_checkpoints(2)
        yield running, said


@pytest.fixture
def stack(started: tuple[RunningStack, str]) -> RunningStack:
    return started[0]


def place(stack: RunningStack, path: str) -> ObjectLocation:
    """A place in the store, asked from this machine."""
    endpoint = f"http://127.0.0.1:{stack.environment['STACK_STORE_PORT']}"
    store = ObjectStore(endpoint, "us-east-1", stack.home / "store" / "credentials")
    return ObjectLocation(store, "faultline", path)


def newest_batch(stack: RunningStack) -> int:
    commits = place(stack, "checkpoints/spark/visits_json/commits")
    return max((int(each.name) for each in commits.iterdir() if each.name.isdigit()), default=-1)


def wait_for_batches(stack: RunningStack, count: int) -> None:
    wanted = newest_batch(stack) + count
    wait_until(lambda: newest_batch(stack) >= wanted, f"batch {wanted}", seconds=LIMIT_SECONDS)


def state_of(stack: RunningStack, service: str) -> str:
    report = json.loads(stack.script("status.sh", "--json", check=False).stdout)
    return str({each["service"]: each["state"] for each in report["services"]}[service])


def test_each_step_of_the_start_has_its_seconds(started: tuple[RunningStack, str]) -> None:
    said = started[1]
    assert "profile: cluster (.env.cluster)" in said
    steps = [line.partition(" s  ")[2] for line in said.splitlines() if " s  " in line]
    order = [next(number for number, step in enumerate(steps) if step.startswith(word)) for word in ("store", "bucket")]
    order.append(next(number for number, step in enumerate(steps) if step.startswith("submit")))
    assert order == sorted(order), steps


def test_status_shows_every_service_and_the_batch_in_the_store(stack: RunningStack) -> None:
    stack.require_all_running()
    wait_for_batches(stack, 1)
    report = stack.wait_until_well()
    assert [each["service"] for each in report["services"]] == SERVICES
    assert report["chosen"]["PROFILE"] == "cluster"
    assert report["synchronizer"]["batch"] >= 0
    assert sum(each["memory_mib"] for each in report["services"]) < 7 << 10


def test_all_data_is_in_the_store_and_the_disk_has_the_notes(stack: RunningStack) -> None:
    job = stack.job()["job_id"]
    checkpoints = {each.parent.name for each in place(stack, f"checkpoints/flink/{job}").rglob("_metadata")}
    assert checkpoints
    assert any(place(stack, "checkpoints/flink/high-availability").rglob("*"))
    assert any(place(stack, "output/visits_json").rglob("*.txt"))
    on_disk = {file.name for file in (stack.home / "checkpoints").rglob("*") if file.is_file()}
    assert {"job.json", "synchronizer.json"} <= on_disk
    assert not {name for name in on_disk if name == "_metadata" or name.isdigit()}
    assert not list((stack.home / "output").rglob("*.txt"))


def test_its_places_are_read_by_the_usual_scripts(stack: RunningStack) -> None:
    assert "visits_json" in stack.script("files.sh", "s3://faultline/output").stdout
    assert "chk-" in stack.script("flink_checkpoints.sh").stdout
    for path in ("checkpoints/flink", "checkpoints/spark/visits_json"):

        def is_well(path: str = path) -> bool:
            return stack.script("inspect.sh", f"s3://faultline/{path}", check=False).returncode == 0

        # The engines write meanwhile: what is half written at one look is whole at another.
        wait_until(is_well, f"a look at {path} without a problem", seconds=LIMIT_SECONDS)


def test_clients_of_the_host_reach_each_broker(stack: RunningStack) -> None:
    for name in ("KAFKA_PORT", "KAFKA_2_PORT", "KAFKA_3_PORT"):
        port = stack.environment[f"STACK_{name}"]
        found = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=LIMIT_SECONDS)
        assert sorted(found.brokers) == [1, 2, 3]


def test_tools_in_containers_reach_the_cluster(stack: RunningStack) -> None:
    brokers = "python3 -c 'from faultline.settings import Settings; print(Settings().bootstrap)'"
    inside = stack.script("exec.sh", "kafka-2", "bash", "-c", brokers).stdout.strip()
    listed = stack.script("exec.sh", "kafka-3", "kafka-topics.sh", "--bootstrap-server", inside, "--list").stdout
    assert "visit_windows" in listed.split()


def test_another_profile_and_other_data_are_refused(stack: RunningStack) -> None:
    for script, settings, said in (
        (("up.sh",), {"DATA": "s3://other"}, "are in s3://faultline, not in s3://other"),
        (("up.sh",), {"KAFKA_BROKERS": "1"}, "for KAFKA_BROKERS=3, not 1"),
        (("start.sh", "generator"), {"KAFKA_BROKERS": "1"}, "for KAFKA_BROKERS=3, not 1"),
    ):
        refused = stack.script(*script, check=False, settings=settings)
        assert refused.returncode == 2
        assert said in refused.stderr.splitlines()[-1]


def test_the_key_is_in_its_files_only(stack: RunningStack) -> None:
    secret = place(stack, "").store.keys()[1]
    files = [file for file in stack.home.rglob("*") if file.is_file() and not file.is_symlink()]
    assert {file.name for file in files if has_secret(file, secret)} == {"credentials", "s3.json"}
    assert (stack.home / "store" / "credentials").stat().st_mode & 0o077 == 0
    assert not any(secret in stack.script("logs.sh", service, "100000").stdout for service in SERVICES)
    require_in_no_process(secret)


def test_all_go_on_after_the_store_was_killed(stack: RunningStack) -> None:
    before, batch = int(stack.job()["checkpoints_completed"]), newest_batch(stack)
    stack.script("kill.sh", "store")
    assert state_of(stack, "store") == "exited"
    assert (
        "PROBLEM: store is exited; start it with scripts/start.sh store"
        in stack.script("status.sh", check=False).stdout
    )
    refused = stack.script("start.sh", "taskmanager-2", check=False)
    assert refused.returncode == 2
    assert "service store is exited; start it with scripts/start.sh store" in refused.stderr
    # What readers have got already stays, and windows wait for a checkpoint: visits come in all the time.
    stack.wait_for_records("visits", 200)
    assert int(stack.job()["checkpoints_completed"]) <= before + AWAY_CHECKPOINTS
    assert "store was started" in stack.script("start.sh", "store").stderr
    stack.wait_for_checkpoints(2)
    if state_of(stack, "spark") != "running":
        # A driver whose commit failed ends with the error, and its next start runs the batch again.
        stack.script("start.sh", "spark")
    wait_until(lambda: newest_batch(stack) > batch, "a batch after the start", seconds=LIMIT_SECONDS)


def test_a_standby_a_worker_and_a_broker_take_over_with_data_in_the_store(stack: RunningStack) -> None:
    for service in ("jobmanager", "spark-worker", "kafka-2"):
        stack.script("kill.sh", service)
    stack.wait_for_checkpoints(2)
    wait_for_batches(stack, 2)
    for service in ("kafka-2", "jobmanager", "spark-worker"):
        stack.script("start.sh", service)
    stack.require_all_running()


def test_down_and_up_continue_with_the_profile_of_the_home(stack: RunningStack) -> None:
    stack.script("down.sh")
    assert Home(stack.home).up() is None
    said = stack.script("up.sh").stderr
    assert "profile: cluster" in said
    stack.wait_for_checkpoints(1)
    stack.script("generator_stop.sh")
    stack.script("settle.sh")
    code, verdict = stack.verdict("all")
    assert code == 0, verdict


def test_a_wipe_leaves_nothing(stack: RunningStack) -> None:
    marker = Home(stack.home).marker()
    assert marker is not None
    assert (marker.topics.profile, marker.topics.data, marker.topics.brokers) == ("cluster", "s3://faultline", 3)
    stack.script("down.sh", "--wipe")
    assert [file for file in stack.home.rglob("*") if file.is_file()] == []
    if marker.topics.backend == "local":
        assert of_stack(marker.stack) == []
    else:
        label = f"label=com.docker.compose.project={marker.project}"
        for listing in (["ps", "--all", "--quiet"], ["volume", "ls", "--quiet"]):
            done = subprocess.run(["docker", *listing, "--filter", label], capture_output=True, text=True, check=True)
            assert done.stdout == ""
    # Nothing of the profile is left: the next start is the usual one.
    usual = read_env_file(Path(__file__).resolve().parents[2] / ".env")
    report = json.loads(stack.script("status.sh", "--json", check=False).stdout)
    assert {each["service"] for each in report["services"]} == {row.name for row in services(usual)}
    assert COUNTS["KAFKA_BROKERS"][0] == 1
