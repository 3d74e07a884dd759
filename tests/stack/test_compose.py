"""The main walkthrough on Compose, with a real container engine."""

from __future__ import annotations

import http
import http.client
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.settings import ROOT, Settings, as_environment, read_env_file
from faultline.stack.backends.containers import Docker
from faultline.stack.home import Home
from faultline.stack.services import LOCAL_PORTS, TABLE
from faultline.waiting import wait_until
from tests.golden.archives import golden
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.ci, pytest.mark.compose, pytest.mark.timeout(2400)]

SERVICES = ("kafka", "generator", "spark", "jobmanager", "taskmanager", "page")
ROWS = (
    "broker-kill",
    "taskmanager-kill",
    "synchronizer-kill",
    "at-least-once-kill",
    "parallelism-2",
    "changed-uid-allowed",
)
LESSONS = (
    "02_cancel_and_restore", "08_classic_job", "09_checkpoints_without_topics", "10_kill_the_synchronizer",
    "21_one_more_field",
)  # fmt: skip
"""Those that copy, mount or start something in a container; test_walkthroughs.py runs the others."""

SERVICE = """version: "2.4"
services:
  consumer:
    image: {image}
    entrypoint: [/opt/faultline/venv-tools/bin/python, /here/consumer.py]
    command: ["${{BOOTSTRAP}}", "${{TOPIC}}", /data/page_views.jsonl]
    network_mode: host
    user: "{user}"
    volumes: ["{example}:/here:ro", "${{WORK}}:/data"]
"""
"""A pipeline of a user, in a container."""


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


def compose_program() -> list[str]:
    """The words that start Compose 2, or Compose 1."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker-compose"] if plugin.returncode else ["docker", "compose"]


def masked(line: str) -> str:
    """A command without what differs from stack to stack: Compose, its project, a job's id, a checkpoint's number."""
    line = re.sub(r" --project-name \S+", "", line).replace("docker-compose", "docker compose")
    return re.sub(r"[0-9a-f]{32}", "JOB", re.sub(r"chk-\d+", "chk-N", line))


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
    assert {"kafka", "spark", "jobmanager", "taskmanager", "page"} <= running.keys()
    for service, container in running.items():
        user = subprocess.run(
            ["docker", "exec", container, "id", "-u"], capture_output=True, text=True, check=True
        ).stdout.strip()
        assert user != "0", service
        ports = inspect(
            container, "{{range $port, $bound := .HostConfig.PortBindings}}{{(index $bound 0).HostIp}} {{end}}"
        )
        assert set(ports.split()) <= {"127.0.0.1"}, service


def status_of(port: int, headers: dict[str, str]) -> int:
    """Status of GET /jobs/ on a port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/jobs/", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("page", ["FLINK_UI_PORT", "SPARK_UI_PORT", "PAGE_PORT"])
def test_foreign_pages_get_403_on_every_published_page(demo: tuple[RunningStack, str], page: str) -> None:
    stack, _ = demo
    port = int(stack.environment[f"STACK_{page}"])
    assert status_of(port, {}) != http.HTTPStatus.FORBIDDEN
    for foreign in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert status_of(port, foreign) == http.HTTPStatus.FORBIDDEN, foreign


def test_services_cannot_write_to_their_image_and_have_limits(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    found = containers(stack)
    assert found
    for service, container in found.items():
        limits = inspect(container, "{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}")
        read_only, memory, processes = limits.split()
        assert (read_only, int(memory) > 0, int(processes) > 0) == ("true", True, True), service


def test_the_inspector_opens_any_path_of_the_host(demo: tuple[RunningStack, str], tmp_path: Path) -> None:
    stack, _ = demo
    shutil.copytree(golden("spark-4.0") / "kafka_killed" / "checkpoint", tmp_path / "checkpoint")
    # Containers run as another user.
    tmp_path.chmod(0o755)
    done = stack.script("inspect.sh", str(tmp_path / "checkpoint"), "--no-lag")
    assert done.stdout.splitlines()[-1].startswith("A restart re-runs batch 3")


def test_help_creates_no_folder(demo: tuple[RunningStack, str], tmp_path: Path) -> None:
    stack, _ = demo
    done = stack.script("verdict.sh", "--help", settings={"HOME": str(tmp_path)})
    assert "Flags that are passed on:" in done.stdout
    assert "--as-is" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_image_that_was_built_again_leaves_a_running_stack_alone(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    running = containers(stack)
    kafka, page = (inspect(running[service], "{{.Config.Image}}") for service in ("kafka", "page"))
    built = inspect(running["kafka"], "{{.Image}}")
    subprocess.run(["docker", "tag", page, kafka], check=True)
    try:
        stack.script("stop.sh", "page")
        stack.script("up.sh")
        assert inspect(containers(stack)["page"], "{{.Config.Image}}") == page
    finally:
        subprocess.run(["docker", "tag", built, kafka], check=True)


def test_stacks_of_one_clone_build_the_same_images(demo: tuple[RunningStack, str], tmp_path: Path) -> None:
    stack, _ = demo
    image = inspect(containers(stack)["kafka"], "{{.Config.Image}}")
    built = inspect(image, "{{.Id}}")
    RunningStack(tmp_path, "compose").script("fetch.sh", "--backend", "compose")
    assert inspect(image, "{{.Id}}") == built


def test_status_tells_that_all_is_well(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    stack.wait_until_well()
    assert stack.script("status.sh").stdout.splitlines()[-1] == "all is well"


def test_the_command_behind_a_script_is_the_one_on_the_page(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    stack.script("flink_cancel.sh")
    messages = stack.script("flink_restore.sh", "latest", settings={"SHOW_COMMANDS": "1"}).stderr
    page = (ROOT / "docs" / "walkthroughs.md").read_text(encoding="utf-8")
    [typed] = [masked(line) for line in messages.splitlines() if line.startswith("   = ")]
    assert typed in [masked(line) for line in page.splitlines()]


def test_a_setting_of_one_call_is_one_of_its_command_too(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    words = ["exec.sh", "jobmanager", "printenv", "STACK_FLINK_PARALLELISM"]
    assert stack.script(*words, settings={"FLINK_PARALLELISM": "7"}).stdout.strip() == "7"
    assert stack.script(*words).stdout.strip() == Settings().text("FLINK_PARALLELISM")


@pytest.mark.full
@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_fault_matrix_passes(demo: tuple[RunningStack, str], name: str) -> None:
    stack, _ = demo
    stack.faults(name, "--reset")


@pytest.mark.full
@pytest.mark.parametrize("name", LESSONS)
def test_a_walkthrough_proves_its_sentences(demo: tuple[RunningStack, str], name: str) -> None:
    stack, _ = demo
    done = stack.script(f"walkthroughs/{name}.sh", check=False)
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    assert "FAILED" not in done.stdout
    stack.wait_until_well()
    assert stack.script("status.sh").stdout.splitlines()[-1] == "all is well"


@pytest.mark.full
def test_a_service_of_compose_is_a_pipeline_that_can_be_killed(demo: tuple[RunningStack, str], tmp_path: Path) -> None:
    stack, _ = demo
    image = inspect(containers(stack)["generator"], "{{.Config.Image}}")
    example = ROOT / "pipelines" / "plain_consumer"
    (tmp_path / "compose.yaml").write_text(SERVICE.format(image=image, example=example, user=os.geteuid()))
    words = f"env BOOTSTRAP={{bootstrap}} TOPIC={{topic}} WORK={{work}} {' '.join(compose_program())}"
    composed = f"{words} --file {{here}}/compose.yaml"
    start = f'command = "{composed} up"\nstop = "{composed} stop --timeout 5"\nkill = "{composed} kill"\n'
    text = (example / "plain_consumer.toml").read_text(encoding="utf-8")
    file = tmp_path / "in_a_container.toml"
    file.write_text(re.sub(r"(?s)(?<=\[start\]\n).*?(?=\n\[)", start, text), encoding="utf-8")
    try:
        done = stack.script("pipeline.sh", "faults", str(file), "kill", check=False)
        print(done.stderr, done.stdout)
        assert done.returncode == 0
        [row] = [line.split() for line in done.stdout.splitlines() if line.startswith("kill  ")]
        assert (row[1], row[2], row[4]) == ("HOLDS", "0", "0")
    finally:
        environment = {**os.environ, "BOOTSTRAP": "", "TOPIC": "", "WORK": str(tmp_path)}
        subprocess.run([*compose_program(), "down"], cwd=tmp_path, env=environment, capture_output=True, check=True)


def test_what_containers_wrote_can_be_removed(demo: tuple[RunningStack, str]) -> None:
    stack, _ = demo
    # While the job runs, folders of old checkpoints are removed.
    stack.script("down.sh")
    folders = [path for path in stack.home.rglob("*") if path.is_dir()]
    assert [path for path in folders if path.stat().st_mode & 0o002] == [], "no other user may write"
    stack.script("down.sh", "--wipe")
    assert not (stack.home / "checkpoints" / "flink").exists()
    assert not (stack.home / "output").exists()


@pytest.mark.full
def test_up_after_one_that_was_interrupted_starts_everything(tmp_path: Path) -> None:
    """Compose 2 creates all containers, and then starts one after the other."""

    def states() -> set[str]:
        marker = Home(tmp_path).marker_or_none()
        found = Docker(marker.project, os.environ).containers() if marker else {}
        return {each.state for each in found.values()}

    with RunningStack(tmp_path, "compose") as stack:
        with subprocess.Popen([ROOT / "scripts" / "up.sh"], env=stack.environment, start_new_session=True) as up:
            wait_until(lambda: "running" in states(), "the first container", seconds=900)
            os.killpg(up.pid, signal.SIGINT)
            assert up.wait(timeout=300) != 0
        assert "running" not in states()
        stack.script("up.sh")
        stack.wait_until_well()


# Last: there is one project with this name at a time.
@pytest.mark.full
def test_compose_alone_starts_a_stack_that_the_scripts_know(tmp_path: Path) -> None:
    with RunningStack(tmp_path, "compose") as stack:
        # Without the scripts, ports that are not published are those of .env.
        inner = set(LOCAL_PORTS) - {row.published for row in TABLE}
        for name in as_environment(dict.fromkeys(inner, "")):
            del stack.environment[name]

        program = compose_program()

        def compose(*words: str) -> str:
            done = subprocess.run(
                [*program, *words],
                cwd=ROOT,
                env=stack.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=1500,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        compose("up", "-d")
        stack.wait_until_well()
        bootstrap = f"kafka:{read_env_file(ROOT / '.env')['KAFKA_CONTAINER_PORT']}"
        topics = ("kafka-topics.sh", "--bootstrap-server", bootstrap, "--describe")
        assert "PartitionCount" in compose("exec", "-T", "kafka", *topics)
        newest = int(stack.wait_for_checkpoints(1)["latest_checkpoint"])
        compose("down")
        compose("up", "-d")
        stack.wait_until_well()
        restored = str(stack.job()["restored_from"])
        assert int(restored.rpartition("chk-")[2]) >= newest
        stack.wait_for_checkpoints(1)
        assert stack.verdict("all", "--as-is")[0] == 0
