"""Promises of the images and of docker-compose.yaml, as far as they can be checked without an engine."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from faultline.settings import ROOT, as_environment, read_env_file
from faultline.stack.backends.compose import ComposeBackend
from faultline.stack.home import Home
from faultline.stack.services import COUNTS, TABLE
from faultline.stack.settings import load

# Compose itself, the images, or the host's scripts use these; no service does.
NOT_FOR_SERVICES = {
    "UID", "GID", "BACKEND", "PROFILE", "PORT_OFFSET",
    "BASE_IMAGE", "IMAGE_TAG", "PYTHON_VERSION", "JAVA_VERSION", "NOTEBOOK_PORT",
    "PAGE_BUTTONS_PORT",
}  # fmt: skip
ROOT_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n"
PROXY_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def _code(*words: str) -> int:
    return subprocess.run(words, capture_output=True, check=False).returncode


def generations() -> list[list[str]]:
    """Compose 1 and Compose 2, as far as they are installed."""
    both = (["docker-compose"], ["docker", "compose"])
    found = [words for words in both if shutil.which(words[0])]
    return [words for words in found if not _code(*words, "version")]


def environments(compose: list[str], environ: dict[str, str]) -> dict[str, dict[str, str]]:
    """What each service finds in its environment, by Compose itself; all profiles."""
    every = sorted({profile for row in TABLE for profile in row.profiles})
    command = [*compose, "--project-directory", str(ROOT), "--file", str(ROOT / "docker-compose.yaml"), "config"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True,
        env={"PATH": os.environ["PATH"], "COMPOSE_PROFILES": ",".join(every), **environ},
    )  # fmt: skip
    services = yaml.safe_load(done.stdout)["services"]
    # `config` doubles each dollar, so that its output can be read again.
    return {
        name: {key: value.replace("$$", "$") for key, value in entry["environment"].items() if value is not None}
        for name, entry in services.items()
    }


needs_compose = pytest.mark.skipif(not generations(), reason="neither docker-compose nor docker compose is installed")


@needs_compose
@pytest.mark.parametrize("compose", generations(), ids=" ".join)
def test_without_a_variable_every_service_has_the_settings_of_the_file(compose: list[str]) -> None:
    defaults = as_environment(read_env_file(ROOT / ".env"))
    for name, environment in environments(compose, {}).items():
        differ = {key: environment.get(key) for key, value in defaults.items() if environment.get(key) != value}
        assert differ == {}, name


@needs_compose
@pytest.mark.parametrize("compose", generations(), ids=" ".join)
def test_what_is_chosen_for_a_stack_reaches_every_service(compose: list[str], tmp_path: Path) -> None:
    odd = "--rate 20 'a \"b\"' ${x} $y \\ #z"
    stack = load({"STACK_GENERATOR_ARGS": odd, "STACK_VISITS_TOPIC": odd}, {"PROFILE": "cluster"}, {})
    backend = ComposeBackend(stack, Home(tmp_path))
    wanted = as_environment({name: stack.values[name] for name in read_env_file(ROOT / ".env")})
    wanted |= {"STACK_GENERATOR_ARGS": odd, "STACK_HOME": "/faultline"}
    for name in ("UID", "GID", "IMAGE_TAG"):
        del wanted[f"STACK_{name}"]
    with backend.docker.variables() as environ:
        for name, environment in environments(compose, environ).items():
            differ = {key: environment.get(key) for key, value in wanted.items() if environment.get(key) != value}
            assert differ == {}, name


@needs_compose
@pytest.mark.parametrize("compose", generations(), ids=" ".join)
def test_a_variable_of_the_shell_wins_for_what_the_file_reads_and_what_goes_with_a_profile(compose: list[str]) -> None:
    settings = read_env_file(ROOT / ".env").keys() - NOT_FOR_SERVICES
    text = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    read = {name for name in settings if re.search(rf"\$\{{(STACK_)?{name}}}", text)}
    chosen = {f"STACK_{name}": "1" for name in read - {"COMPOSE_PROJECT_NAME"} | COUNTS.keys()}
    chosen |= {"COMPOSE_PROJECT_NAME": "other", "STACK_BIND_ADDRESS": "127.0.0.2", "STACK_DATA": "s3://other"}
    wanted = chosen | {"STACK_COMPOSE_PROJECT_NAME": "other"}
    del wanted["COMPOSE_PROJECT_NAME"]
    for name, environment in environments(compose, chosen).items():
        assert {key: environment.get(key) for key in wanted} == wanted, name


def test_every_service_of_the_table_is_in_compose_with_its_image_and_grace(compose: dict[str, Any]) -> None:
    entries = compose["services"]
    assert {row.name for row in TABLE} | {"permissions", "tools"} == entries.keys()
    for row in TABLE:
        entry = entries[row.name]
        assert entry["image"] == f"faultline/{row.image}:${{STACK_IMAGE_TAG}}", row.name
        assert entry["command"].startswith(" ".join(row.command)), row.name
        assert (ROOT / row.command[0]).exists()
        assert entry.get("profiles", []) == row.profiles, row.name
        published = (
            [f"${{STACK_BIND_ADDRESS}}:${{STACK_{row.published}}}:${{STACK_{row.published}}}"] if row.published else []
        )
        assert entry.get("ports", []) == published, row.name
        if not row.one_shot:
            assert entry["stop_grace_period"] == f"{row.grace_seconds:g}s", row.name


def test_every_service_has_limits_and_cannot_write_to_its_image(compose: dict[str, Any]) -> None:
    for name, entry in compose["services"].items():
        assert entry["read_only"] is True, name
        assert entry["pids_limit"], name
        assert entry["mem_limit"], name
        assert entry["logging"]["options"]["max-size"], name
        mounts = [volume for volume in entry.get("volumes", []) if volume.startswith("$")]
        assert all(volume.endswith((":z", ",z")) for volume in mounts), name


def test_only_permissions_runs_as_root_and_nothing_restarts(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert (service["user"] == "0:0") == (name == "permissions"), name
        assert service["restart"] == "no", name
        assert service["cap_drop"] == ["ALL"], name
    assert compose["services"]["permissions"]["network_mode"] == "none"


def test_every_volume_is_declared_and_belongs_to_the_user_of_its_service(compose: dict[str, Any]) -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    mounts = {
        volume: (name, place)
        for name, entry in compose["services"].items()
        for volume, place in (each.split(":")[:2] for each in entry.get("volumes", []) if not each.startswith("$"))
    }
    assert mounts.keys() == compose["volumes"].keys()
    for name, place in mounts.values():
        assert compose["services"][name]["user"] == "1000:1000"
        # A new volume takes its owner from the folder of the image.
        assert re.search(rf"^COPY --from=code --chown=1000:1000 \S+ {place}$", dockerfile, re.MULTILINE), place


def test_ports_are_published_on_the_bind_address_only(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert len(published) == len([row for row in TABLE if row.published])
    assert all(port.startswith("${STACK_BIND_ADDRESS}:") for port in published)


def test_every_long_running_service_has_a_health_check_and_the_script_knows_it(compose: dict[str, Any]) -> None:
    known = (ROOT / "docker" / "health.sh").read_text(encoding="utf-8")
    for row in TABLE:
        if row.one_shot:
            continue
        # A copy without a port of its own is asked about as the first one is.
        name = row.name if row.port else row.family
        assert compose["services"][row.name]["healthcheck"]["test"] == ["CMD", "docker/health.sh", name]
        assert f"\n  {name})" in known


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the check reads Linux's table of connections")
def test_a_generator_is_healthy_with_a_connection_to_any_broker() -> None:
    ports = ("STACK_KAFKA_CONTAINER_PORT", "STACK_KAFKA_2_CONTAINER_PORT", "STACK_KAFKA_3_CONTAINER_PORT")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        connected = server.getsockname()[1]

        def code(numbers: tuple[int, int, int]) -> int:
            environ = {"PATH": os.environ["PATH"], **dict(zip(ports, map(str, numbers), strict=True))}
            return subprocess.run([ROOT / "docker" / "health.sh", "generator"], env=environ, check=False).returncode

        assert code((1, connected, 2)) == code((connected, 1, 2)) == code((1, 2, connected)) == 0
        assert code((1, 2, 3)) == 1


def collect(bundle: Path, packaged: Path, target: Path) -> list[str]:
    command = [str(ROOT / "docker" / "collect_certs.sh"), str(bundle), str(packaged), str(target)]
    subprocess.run(command, check=True, capture_output=True, env={"PATH": os.environ["PATH"]})
    return sorted(path.read_text() for path in target.glob("*.crt"))


def test_only_certificates_beyond_the_distribution_are_collected(tmp_path: Path) -> None:
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    (packaged / "root.crt").write_text(ROOT_CERTIFICATE)
    bundle = tmp_path / "bundle.crt"
    target = tmp_path / "certs"
    target.mkdir()
    (target / "by_hand.crt").write_text("kept")

    bundle.write_text(ROOT_CERTIFICATE.replace("\nBBBB", "BBBB"))
    assert collect(bundle, packaged, target) == ["kept"], "an ordinary host: the same certificate, laid out differently"

    bundle.write_text(ROOT_CERTIFICATE + PROXY_CERTIFICATE)
    assert collect(bundle, packaged, target) == [PROXY_CERTIFICATE, "kept"]

    bundle.write_text(ROOT_CERTIFICATE)
    assert collect(bundle, packaged, target) == ["kept"], "no longer trusted by the host"


def test_a_host_without_a_packaged_folder_collects_nothing(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.crt"
    bundle.write_text(PROXY_CERTIFICATE)
    assert collect(bundle, tmp_path / "absent", tmp_path / "certs") == []
