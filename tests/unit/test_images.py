"""Promises of the images and of docker-compose.yaml, as far as they can be checked without an engine."""

from __future__ import annotations

import http
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from faultline.settings import ROOT, as_environment, read_env_file
from faultline.stack.backends.compose import ComposeBackend
from faultline.stack.home import Home
from faultline.stack.services import COUNTS, TABLE, Service, mebibytes_of
from faultline.stack.settings import load
from tests.tree import require_none

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
    """The environment of each service of all profiles, as Compose itself prints it."""
    every = sorted({profile for row in TABLE for profile in row.profiles})
    command = [*compose, "--project-directory", str(ROOT), "--file", str(ROOT / "docker-compose.yaml"), "config"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True,
        env={"PATH": os.environ["PATH"], "COMPOSE_PROFILES": ",".join(every), **environ},
    )  # fmt: skip
    # A document of 3,000 lines: the loader in C takes a tenth of the time.
    services = yaml.load(done.stdout, Loader=yaml.CSafeLoader)["services"]
    # `config` doubles each dollar, so that its output can be read again.
    return {
        name: {key: value.replace("$$", "$") for key, value in entry["environment"].items() if value is not None}
        for name, entry in services.items()
    }


@pytest.mark.parametrize("compose", generations(), ids=" ".join)
def test_without_a_variable_every_service_has_the_settings_of_the_file(compose: list[str]) -> None:
    defaults = as_environment(read_env_file(ROOT / ".env"))
    for name, environment in environments(compose, {}).items():
        differ = {key: environment.get(key) for key, value in defaults.items() if environment.get(key) != value}
        assert differ == {}, name


@pytest.mark.parametrize("compose", generations(), ids=" ".join)
def test_what_is_chosen_for_a_stack_reaches_every_service(compose: list[str], tmp_path: Path) -> None:
    odd = "--rate 20 'a \"b\"' ${x} $y \\ #z"
    stack = load({"STACK_GENERATOR_ARGS": odd, "STACK_VISITS_TOPIC": odd}, {"PROFILE": "cluster"}, {})
    backend = ComposeBackend(stack, Home(tmp_path))
    wanted = as_environment({name: stack.values[name] for name in read_env_file(ROOT / ".env")})
    wanted |= {"STACK_GENERATOR_ARGS": odd, "STACK_HOME": "/faultline"}
    for name in ("UID", "GID", "IMAGE_TAG", "COMPOSE_PROJECT_NAME"):
        del wanted[f"STACK_{name}"]
    with backend.docker.variables() as environ:
        for name, environment in environments(compose, environ).items():
            differ = {key: environment.get(key) for key, value in wanted.items() if environment.get(key) != value}
            assert differ == {}, name


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


def entry_of(row: Service) -> dict[str, Any]:
    """The entry of docker-compose.yaml that a row of the table asks for, as far as it says."""
    port = f"${{STACK_{row.published}}}"
    entry = {
        "image": f"localhost/faultline/{row.image}:${{STACK_IMAGE_TAG}}",
        "command": " ".join([*row.command, *([f"${{{row.name.upper()}_ARGUMENTS:-}}"] if row.flags else [])]),
        "profiles": row.profiles or None,
        "ports": [f"${{STACK_BIND_ADDRESS}}:{port}:{port}"] if row.published else None,
    }
    if row.one_shot:
        return entry
    check = ["CMD", "docker/health.sh", *row.container_check]
    return {**entry, "stop_grace_period": f"{row.grace_seconds:g}s", "healthcheck": check}


def test_every_entry_is_as_its_row_of_the_table_says(compose: dict[str, Any]) -> None:
    entries = compose["services"]
    assert {row.name for row in TABLE} | {"permissions", "tools"} == entries.keys()
    found = {
        name: {**entry, "healthcheck": entry.get("healthcheck", {}).get("test")} for name, entry in entries.items()
    }
    require_none(
        f"{row.name}: {key} is {found[row.name].get(key)}, and the table says {wanted}"
        for row in TABLE
        for key, wanted in entry_of(row).items()
        if found[row.name].get(key) != wanted
    )


def test_every_service_is_checked_on_a_port_on_which_it_listens() -> None:
    ports = read_env_file(ROOT / ".env").keys()
    for row in TABLE:
        named = {name for word in row.container_check for name in re.findall(r"[A-Z][A-Z0-9_]*_PORT", word)}
        assert bool(named) != row.one_shot, row.name
        assert named <= ports, row.name
        assert not row.listens or named <= set(row.listens), row.name


def test_every_service_has_a_script_which_says_the_names_of_its_copies() -> None:
    families = {row.family for row in TABLE}
    scripts = {path.stem: path for path in (ROOT / "faultline" / "services").glob("*.sh")}
    assert scripts.keys() == families | {"environment"}
    for family in families:
        copies = "|".join(row.name for row in TABLE if row.copy_of == family)
        usage = f"# Usage: faultline/services/{family}.sh{f' [{copies}]' if copies else ''}"
        lines = scripts[family].read_text(encoding="utf-8").splitlines()
        assert any(line == usage or line.startswith(f"{usage} ") for line in lines), usage


def started_before(name: str, entries: dict[str, Any]) -> set[str]:
    """The services for which Compose waits until it starts this one."""
    own = entries[name].get("depends_on", {})
    return set(own).union(*(started_before(each, entries) for each in own))


def test_every_service_starts_after_those_that_its_row_needs(compose: dict[str, Any]) -> None:
    entries = compose["services"]
    rows = {row.name: row for row in TABLE}
    for row in TABLE:
        before = started_before(row.name, entries)
        # Compose knows of no dependency on a service of a profile that may be off.
        always = {need for need in row.needs if not rows[need].profiles}
        needs = always | {need for need in row.needs if row.profiles and set(row.profiles) <= set(rows[need].profiles)}
        assert needs <= before, row.name
        # The folders of the home belong to the stack's user by then.
        mounts = entries[row.name].get("volumes", [])
        assert "permissions" in before or not any(mount.startswith("$") for mount in mounts), row.name
        for need, how in entries[row.name].get("depends_on", {}).items():
            one_shot = need not in rows or rows[need].one_shot
            wanted = {"service_completed_successfully"} if one_shot else {"service_healthy", "service_started"}
            assert how["condition"] in wanted, (row.name, need)


def test_every_limit_leaves_room_for_what_the_row_says(compose: dict[str, Any]) -> None:
    largest = read_env_file(ROOT / ".env") | {"FLINK_STATE_BACKEND": "rocksdb"}
    for row in TABLE:
        limit = compose["services"][row.name]["mem_limit"]
        assert int(limit[:-1]) << {"m": 0, "g": 10}[limit[-1]] > mebibytes_of(row, largest), row.name


def test_every_image_is_built_once_before_it_is_used_and_no_registry_has_it(compose: dict[str, Any]) -> None:
    builders: dict[str, str] = {}
    # Compose 1.29 makes images in the order of the file, as far as dependencies allow.
    for name, entry in compose["services"].items():
        assert entry["image"].startswith("localhost/"), name
        assert entry["pull_policy"] == "never", name
        target = entry["image"].partition("faultline/")[2].partition(":")[0]
        if "build" in entry:
            assert target not in builders, f"{name}: {builders.get(target)} builds that image, too"
            assert entry["build"]["target"] == target, name
            builders[target] = name
        builder = builders[target]
        assert set(compose["services"][builder].get("profiles", [])) <= set(entry.get("profiles", [])), name


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


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the check reads Linux's table of connections")
def test_a_generator_is_healthy_with_a_connection_to_any_broker() -> None:
    (check,) = (row.container_check for row in TABLE if row.name == "generator")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        connected = server.getsockname()[1]

        def code(*numbers: int) -> int:
            return health(check, dict(zip(check[1:], numbers, strict=True)))

        assert code(1, connected, 2) == code(connected, 1, 2) == code(1, 2, connected) == 0
        assert code(1, 2, 3) == 1


def health(check: Sequence[str], ports: Mapping[str, int]) -> int:
    """Exit code of docker/health.sh with these words."""
    environ = {"PATH": os.environ["PATH"]} | as_environment({name: str(port) for name, port in ports.items()})
    command = [str(ROOT / "docker" / "health.sh"), *check]
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    ("name", "well", "not_well"),
    [
        ("jobmanager", '{"taskmanagers":0}', "starting"),
        ("taskmanager", '{"taskmanagers":2}', '{"taskmanagers":0}'),
        ("spark-master", '"status" : "ALIVE"', '"status" : "RECOVERING"'),
        ("store", "", None),
    ],
)
def test_a_service_with_a_page_is_healthy_when_the_page_says_so(name: str, well: str, not_well: str | None) -> None:
    (row,) = (row for row in TABLE if row.name == name)
    # Names of containers: here all of them are this machine.
    check = [re.sub(r"^jobmanager(-2)?:", "127.0.0.1:", word) for word in row.container_check]
    names = [word.partition(":")[2] for word in check[3:]]
    answer: str | None = well

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(http.HTTPStatus.SERVICE_UNAVAILABLE if answer is None else http.HTTPStatus.OK)
            self.end_headers()
            self.wfile.write((answer or "").encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server, socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        silent = other.getsockname()[1]
        other.close()
        for each in names:
            assert health(check, {**dict.fromkeys(names, silent), each: server.server_port}) == 0
        answer = not_well
        assert health(check, dict.fromkeys(names, server.server_port)) == 1
        assert health(check, dict.fromkeys(names, silent)) == 1
        server.shutdown()


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
