"""The stack's own object store before its program runs: its key, its command line, where it is found."""

from __future__ import annotations

import configparser
import json
import os
import stat
from pathlib import Path

import pytest

from faultline.files import replace_text
from faultline.services.store.bucket import wait_for_bucket
from faultline.services.store.keys import write_keys
from faultline.services.store.start import command, environment
from faultline.settings import STORE_CREDENTIALS, Settings, SettingsError
from faultline.stack.services import service
from faultline.stack.settings import load
from faultline.storage.objects import CREDENTIALS, LocationError, store_of
from tests.called import program

PORTS = service("store", load({"STACK_DATA": "s3://b"}, {}, {}).values).listens
FILES = {STORE_CREDENTIALS, "s3.json", "security.toml"}


def key_of(folder: Path) -> tuple[str, str]:
    parser = configparser.ConfigParser()
    parser.read(folder / STORE_CREDENTIALS)
    return parser["default"]["aws_access_key_id"], parser["default"]["aws_secret_access_key"]


def own(home: Path, **settings: str) -> Settings:
    chosen = {"HOME": str(home), "DATA": "s3://faultline", **settings}
    return Settings({f"STACK_{name}": value for name, value in chosen.items()})


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_keys(tmp_path)
    finally:
        os.umask(before)
    assert {file.name for file in tmp_path.iterdir()} == FILES
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in tmp_path.iterdir())
    key, secret = key_of(tmp_path)
    assert (len(key), len(secret)) == (20, 40)
    [user] = json.loads((tmp_path / "s3.json").read_text())["identities"]
    assert user["credentials"] == [{"accessKey": key, "secretKey": secret}]
    inner = (tmp_path / "security.toml").read_text()
    assert secret not in inner
    write_keys(tmp_path)
    assert key_of(tmp_path) == (key, secret)
    assert (tmp_path / "security.toml").read_text() != inner
    assert len(set(inner.split('"')[1::2])) == 4


def test_two_stores_have_two_keys(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_keys(tmp_path / name)
    assert not set(key_of(tmp_path / "one")) & set(key_of(tmp_path / "other"))


def test_what_an_interrupted_start_left_is_replaced(tmp_path: Path) -> None:
    left = tmp_path / "a.new"
    left.write_text("half")
    left.chmod(0o644)
    replace_text(tmp_path / "a", "whole", private=True)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "whole")]


@pytest.mark.parametrize("text", ["", "[default]\naws_access_key_id = a\n", "no section\n"])
def test_a_damaged_key_is_named_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / STORE_CREDENTIALS).write_text(text)
    with pytest.raises(SettingsError, match=rf"{tmp_path}/credentials has no key .*; remove it, and .* makes another"):
        write_keys(tmp_path)


def test_the_command_has_the_path_of_the_key_and_every_port(tmp_path: Path) -> None:
    settings = own(tmp_path)
    write_keys(tmp_path)
    words = command(settings, Path("/weed"), tmp_path)
    assert f"-s3.config={tmp_path}/s3.json" in words
    assert not any(part in word for word in words for part in key_of(tmp_path))
    ports = {settings.text(name) for name in PORTS}
    assert len(ports) == 8
    assert ports <= {word.partition("=")[2] for word in words if ".port" in word}
    # Nobody else gets the address of this store, and no bucket is made by mistake.
    assert {"-master.telemetry=false", "-s3.autoCreateBucket=false", "-s3.iam=false"} <= set(words)


def test_the_store_answers_what_it_has_done_only_when_it_is_asked(tmp_path: Path) -> None:
    quiet = command(own(tmp_path), Path("/weed"), tmp_path)
    assert not any("metricsPort" in word for word in quiet)
    assert command(own(tmp_path), Path("/weed"), tmp_path, 20_000) == [*quiet, "-metricsPort=20000"]


def test_only_s3_leaves_the_container(tmp_path: Path) -> None:
    words = command(own(tmp_path, STORE_BIND_HOST="0.0.0.0"), Path("/weed"), tmp_path)
    assert {word for word in words if "ip" in word.partition("=")[0]} == {
        "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.ip.bind=0.0.0.0",
    }  # fmt: skip


def test_no_variable_of_the_caller_configures_the_store(tmp_path: Path) -> None:
    caller = {"PATH": "/bin", "HOME": "/me", "AWS_ACCESS_KEY_ID": "mine", "WEED_JWT_SIGNING_KEY": "mine"}
    made = environment(caller, tmp_path)
    assert "mine" not in made.values()
    assert (made["PATH"], made["HOME"]) == ("/bin", str(tmp_path))


def test_a_store_without_its_program_ends_with_a_line(tmp_path: Path) -> None:
    places = {"STACK_ARTIFACTS": str(tmp_path / "artifacts"), "STACK_HOME": str(tmp_path)}
    done = program("faultline.services.store.start", **places)
    assert done.returncode == 2
    assert done.stderr == (
        f"store: {tmp_path}/artifacts/venv-store/bin/weed is missing; scripts/up.sh fetches it for a stack with an "
        "object store\n"
    )


def test_programs_find_the_stacks_own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of another store, which is not used.
    monkeypatch.setenv(CREDENTIALS, "/nowhere")
    monkeypatch.setenv("AWS_REGION", "nowhere-1")
    settings = own(tmp_path)
    with pytest.raises(LocationError, match=r"store/credentials is missing; .* scripts/start\.sh store"):
        store_of(settings)
    settings.store_folder.mkdir()
    write_keys(settings.store_folder)
    store = store_of(settings)
    assert store.endpoint == f"http://127.0.0.1:{settings.text('STORE_PORT')}"
    assert store.keys() == key_of(tmp_path / "store")
    assert store.region == "us-east-1"
    assert own(tmp_path, JOBMANAGER_HOST="jobmanager").store_endpoint == f"http://store:{settings.text('STORE_PORT')}"


def test_a_named_store_is_not_the_stacks_own(tmp_path: Path) -> None:
    named = own(tmp_path, STORE_ENDPOINT="http://127.0.0.1:1")
    assert not named.has_own_store
    assert named.store_endpoint == "http://127.0.0.1:1"
    assert not Settings({}).has_own_store


def test_there_is_no_bucket_without_data_in_a_store(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="the stack's data is on a disk"):
        wait_for_bucket(Settings({"STACK_HOME": str(tmp_path)}), 0)


def test_a_bucket_in_a_store_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    write_keys(tmp_path / "store")
    settings = {"STACK_HOME": str(tmp_path), "STACK_DATA": "s3://faultline", "STACK_STORE_PORT": "1"}
    settings["AWS_EC2_METADATA_DISABLED"] = "true"
    done = program("faultline.services.store.bucket", "--wait-seconds", "0", **settings)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("bucket: s3://faultline: the object store at http://127.0.0.1:1 does not answer; ")
    assert not any(part in line for part in key_of(tmp_path / "store"))
