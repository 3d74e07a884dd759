"""What the images and docker-compose.yaml promise, as far as it can be seen without an engine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from contract.settings import ROOT, read_env_file
from stack.services import TABLE

# Compose itself, the images, or the host's scripts use these; no service does.
NOT_FOR_SERVICES = {
    "COMPOSE_PROJECT_NAME", "UID", "GID", "BACKEND", "PORT_OFFSET",
    "BASE_IMAGE", "IMAGE_TAG", "PYTHON_VERSION", "JAVA_VERSION", "NOTEBOOK_PORT",
    "PAGE_BUTTONS_PORT",
}  # fmt: skip
# Further flags of a service, for one run; without a default they are not in .env.
FLAGS = {"GENERATOR_ARGS", "SPARK_ARGS"}
ROOT_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n"
PROXY_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nCCCC\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def test_every_setting_reaches_the_services_by_name(compose: dict[str, Any]) -> None:
    wanted = read_env_file(ROOT / ".env").keys() - NOT_FOR_SERVICES
    passed = compose["x-environment"]
    assert {f"STACK_{name}": f"${{{name}}}" for name in wanted}.items() <= passed.items()
    assert {f"STACK_{name}": f"${{{name}:-}}" for name in FLAGS}.items() <= passed.items()


def test_every_service_of_the_table_is_in_compose_with_its_image_and_grace(compose: dict[str, Any]) -> None:
    entries = compose["services"]
    assert {row.name for row in TABLE} | {"permissions", "tools"} == entries.keys()
    for row in TABLE:
        entry = entries[row.name]
        assert entry["image"] == f"faultline/{row.image}:${{IMAGE_TAG}}", row.name
        assert entry["command"].startswith(" ".join(row.command)), row.name
        assert (ROOT / row.command[0]).exists()
        assert entry.get("profiles", []) == ([row.second] if row.second else []), row.name
        published = [f"${{BIND_ADDRESS}}:${{{row.published}}}:${{{row.published}}}"] if row.published else []
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


def test_ports_are_published_on_the_bind_address_only(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert len(published) == 5
    assert all(port.startswith("${BIND_ADDRESS}:") for port in published)


def test_every_long_running_service_has_a_health_check_and_the_script_knows_it(compose: dict[str, Any]) -> None:
    known = (ROOT / "docker" / "health.sh").read_text(encoding="utf-8")
    for name in ("kafka", "zookeeper", "generator", "spark", "jobmanager", "jobmanager-2", "taskmanager", "page"):
        assert compose["services"][name]["healthcheck"]["test"] == ["CMD", "docker/health.sh", name]
        assert f"\n  {name})" in known


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
