"""Where a setting comes from, and what is never taken."""

from __future__ import annotations

import pytest

from contract.settings import read_env_file
from stack.errors import StackError
from stack.settings import ENV_FILE, StackSettings, load, unknown_variables

DEFAULTS = read_env_file(ENV_FILE)


def resolved(
    environ: dict[str, str], flags: dict[str, str] | None = None, running: dict[str, str] | None = None
) -> StackSettings:
    return load(environ, flags or {}, running or {})


def test_flag_over_variable_over_running_stack_over_file() -> None:
    assert resolved({}).values["SPARK_TRIGGER"] == DEFAULTS["SPARK_TRIGGER"]
    running = {"SPARK_TRIGGER": "1 second", "BACKEND": "local"}
    assert resolved({}, {}, running).values["SPARK_TRIGGER"] == "1 second"
    variable = {"STACK_SPARK_TRIGGER": "2 seconds", "STACK_BACKEND": "local"}
    assert resolved(variable, {}, running).values["SPARK_TRIGGER"] == "2 seconds"
    assert resolved(variable, {"BACKEND": "compose"}, running).values["BACKEND"] == "compose"


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
    program = resolved({"STACK_KAFKA_PORT": "9999", **environ}).environment(environ)
    assert program["STACK_KAFKA_PORT"] == "9999"
    assert (program["PATH"], program["HOME"], program["TZ"]) == ("/bin", "/me", "UTC")
    assert not {"SPARK_HOME", "FLINK_CONF_DIR"} & program.keys()
    assert "/x" not in program["PYTHONPATH"]


@pytest.mark.parametrize("environ", [{"PORT_OFFSET": "100"}, {"STACK_PORT_OFFSET": "100"}])
def test_an_offset_moves_every_port(environ: dict[str, str]) -> None:
    moved, usual = resolved(environ).ports(), resolved({}).ports()
    assert moved == {name: port + 100 for name, port in usual.items()}
    assert resolved(environ).values["KAFKA_BOOTSTRAP"].endswith(str(usual["KAFKA_PORT"] + 100))


def test_a_port_that_was_chosen_stays_where_it_was_chosen() -> None:
    assert resolved({"PORT_OFFSET": "100", "STACK_KAFKA_PORT": "9500"}).ports()["KAFKA_PORT"] == 9500


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"STACK_KAFKA_PORT": "tcp://1"}, "KAFKA_PORT=tcp://1 is not a whole number"),
        ({"STACK_KAFKA_PORT": "70000"}, "KAFKA_PORT=70000"),
        ({"PORT_OFFSET": "60000"}, "a port is at most 65535"),
        ({"STACK_KAFKA_BOOTSTRAP": "prod:9092"}, "KAFKA_BOOTSTRAP=prod:9092 is not on this machine; .*--allow-remote"),
        ({"STACK_KAFKA_BOOTSTRAP": "127.0.0.1:9092,prod:9092"}, "not on this machine"),
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
