"""Sources of a setting, and variables that are never used as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.settings import SettingsError, own_store, read_env_file
from faultline.stack.backend import START
from faultline.stack.backends.containers import Docker
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.home import Home
from faultline.stack.services import service, services
from faultline.stack.settings import ENV_FILE, OF_ONE_CALL, SHOW_COMMANDS, StackSettings, load, unknown_variables

DEFAULTS = read_env_file(ENV_FILE)


def resolved(
    environ: dict[str, str], flags: dict[str, str] | None = None, running: dict[str, str] | None = None
) -> StackSettings:
    return load(environ, flags or {}, running or {})


def test_a_variable_without_the_prefix_is_named_and_not_used() -> None:
    settings = resolved({"KAFKA_BOOTSTRAP": "prod:9092", "KAFKA_PORT": "tcp://10.0.0.1:9092", "HOME": "/root"})
    assert settings.values["KAFKA_BOOTSTRAP"] == f"127.0.0.1:{DEFAULTS['KAFKA_PORT']}"
    assert len(settings.warnings) == 2
    assert (
        "KAFKA_BOOTSTRAP=prod:9092 is not used; to change the setting use STACK_KAFKA_BOOTSTRAP" in settings.warnings[0]
    )


def test_programs_get_our_settings_and_no_foreign_ones() -> None:
    environ = {
        "PATH": "/bin",
        "SPARK_HOME": "/opt/other",
        "FLINK_CONF_DIR": "/etc/flink",
        "PYTHONPATH": "/x",
        "HOME": "/me",
    }
    program = resolved({"STACK_KAFKA_PORT": "9999", **environ}).environment()
    assert program["STACK_KAFKA_PORT"] == "9999"
    assert (program["PATH"], program["HOME"], program["TZ"]) == ("/bin", "/me", "UTC")
    assert not {"SPARK_HOME", "FLINK_CONF_DIR"} & program.keys()
    assert "/x" not in program["PYTHONPATH"]


def test_the_key_of_another_store_is_not_that_of_the_stacks_own() -> None:
    theirs = {"AWS_SHARED_CREDENTIALS_FILE": "/me/.aws/credentials", "AWS_PROFILE": "work", "AWS_REGION": "eu-1"}
    secret = {"AWS_SECRET_ACCESS_KEY": "mine"}
    named = resolved({"STACK_STORE_ENDPOINT": "http://127.0.0.1:1", **theirs, **secret}).environment()
    assert theirs.items() <= named.items()
    own = resolved({"STACK_DATA": "s3://faultline", **theirs, **secret}).environment()
    assert not theirs.keys() & own.keys()
    assert "mine" not in {**named, **own}.values()


def test_another_word_for_the_data_is_refused_before_anything_starts() -> None:
    with pytest.raises(SettingsError, match="DATA='faultline' is neither empty, nor disk, nor of the form s3://BUCK"):
        resolved({"STACK_DATA": "faultline"})


def test_a_word_puts_the_data_on_the_disk_where_a_file_names_a_store() -> None:
    cluster = load({"STACK_DATA": "disk"}, {"PROFILE": "cluster"}, {})
    assert cluster.typed.data.startswith("file:")
    assert not own_store(cluster.values)
    assert "store" not in [row.name for row in services(cluster.values)]


def test_a_stack_whose_profile_is_gone_can_be_stopped() -> None:
    assert load({}, {}, {"PROFILE": "gone"}).values["DATA"] == ""
    for asked in ({"environ": {"STACK_PROFILE": "gone"}, "flags": {}}, {"environ": {}, "flags": {"PROFILE": "gone"}}):
        with pytest.raises(StackError, match="there is no profile 'gone'"):
            load(asked["environ"], asked["flags"], {"PROFILE": "gone"})


@pytest.mark.parametrize("environ", [{"PORT_OFFSET": "100"}, {"STACK_PORT_OFFSET": "100"}])
def test_an_offset_moves_every_port(environ: dict[str, str]) -> None:
    moved, usual = resolved(environ).ports(), resolved({}).ports()
    assert moved == {name: port + 100 for name, port in usual.items()}
    assert resolved(environ).values["KAFKA_BOOTSTRAP"].endswith(str(usual["KAFKA_PORT"] + 100))


def test_an_offset_moves_every_broker() -> None:
    moved = resolved({"PORT_OFFSET": "100", "STACK_KAFKA_BROKERS": "3"})
    assert moved.values["KAFKA_BOOTSTRAP"] == "127.0.0.1:9192,127.0.0.1:9194,127.0.0.1:9196"


def test_a_port_that_was_chosen_stays_where_it_was_chosen() -> None:
    assert resolved({"PORT_OFFSET": "100", "STACK_KAFKA_PORT": "9500"}).ports()["KAFKA_PORT"] == 9500


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"STACK_KAFKA_PORT": "tcp://1"}, "KAFKA_PORT=tcp://1 is not a whole number"),
        ({"STACK_KAFKA_PORT": "70000"}, "KAFKA_PORT=70000"),
        ({"PORT_OFFSET": "60000"}, "and ports are 1 to 65535"),
        ({"PORT_OFFSET": "-9000"}, "PORT_OFFSET=-9000 moves"),
        ({"STACK_KAFKA_BOOTSTRAP": "prod:9092"}, "KAFKA_BOOTSTRAP=prod:9092 is not on this machine; .*--allow-remote"),
        ({"STACK_KAFKA_BOOTSTRAP": "127.0.0.1:9092,prod:9092"}, "not on this machine"),
        ({"STACK_KAFKA_BROKERS": "2"}, "KAFKA_BROKERS=2: choose 1 or 3"),
        ({"STACK_KAFKA_BROKERS": "three"}, "KAFKA_BROKERS=three: choose 1 or 3"),
        ({"STACK_BIND_ADDRESS": "0.0.0.0"}, "BIND_ADDRESS=0.0.0.0 is not on this machine"),
    ],
)
def test_values_that_make_no_sense_or_reach_too_far(environ: dict[str, str], message: str) -> None:
    with pytest.raises(StackError, match=message):
        resolved(environ)


def test_another_machine_needs_a_flag() -> None:
    far = {"STACK_KAFKA_BOOTSTRAP": "prod:9092"}
    assert resolved(far, {"ALLOW_REMOTE": "yes"}).values["KAFKA_BOOTSTRAP"] == "prod:9092"
    assert resolved({"STACK_KAFKA_BOOTSTRAP": "[::1]:9092"}).values["KAFKA_BOOTSTRAP"] == "[::1]:9092"


def test_a_misspelt_variable_is_named() -> None:
    assert unknown_variables({"STACK_KAFKA_PROT": "1", "STACK_KAFKA_PORT": "1"}, DEFAULTS) == ["STACK_KAFKA_PROT"]


def test_what_a_script_stands_for_is_shown_for_one_call_only(tmp_path: Path) -> None:
    shown = load({"STACK_SHOW_COMMANDS": "1"}, {}, {})
    assert shown.values[SHOW_COMMANDS] == "1"
    assert SHOW_COMMANDS in OF_ONE_CALL
    backend = LocalBackend(shown, Home(tmp_path))
    kafka = service("kafka", shown.values)
    assert backend.typed(kafka, ["kafka-topics.sh", "--list"]) == "scripts/exec.sh kafka kafka-topics.sh --list"
    once = LocalBackend(load({}, {"FLINK_PARALLELISM": "4", "PROFILE": "", "KAFKA_PORT": "1"}, {}), Home(tmp_path))
    assert once.typed(kafka, ["ls"]) == "STACK_FLINK_PARALLELISM=4 scripts/exec.sh kafka ls"
    assert backend.typed_act(kafka, START) == "faultline/services/kafka.sh"
    spark = service("spark", shown.values)
    assert backend.typed_act(spark, START, ["--hold-batch", "next"]) == "faultline/services/spark.sh --hold-batch next"


def test_compose_names_its_project_only_when_it_is_another_one() -> None:
    for project, words in (("mine", " --project-name mine"), (DEFAULTS["COMPOSE_PROJECT_NAME"], "")):
        docker = Docker(project, {})
        docker._program = ["docker-compose"]
        assert docker.typed("exec", "kafka", "ls", "a b") == f"docker-compose{words} exec kafka ls 'a b'"
