"""The profile of a stack: a file of settings, known to every later command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faultline.settings import ROOT, read_env_file
from faultline.stack.errors import StackError
from faultline.stack.home import Home, Topics, Up
from faultline.stack.own import own_environment
from faultline.stack.services import mebibytes, services, table
from faultline.stack.settings import ENV_FILE, load
from faultline.stack.stack import open_stack
from faultline.stack.steps import Steps
from faultline.verbs.arguments import split_flags
from tests.called import script

CLUSTER = {"PROFILE": "cluster"}


def test_a_cluster_has_several_of_each_and_an_object_store() -> None:
    assert [row.name for row in services(load({}, CLUSTER, {}).values)] == [
        "kafka", "kafka-2", "kafka-3", "zookeeper", "store", "jobmanager", "jobmanager-2", "taskmanager",
        "taskmanager-2", "spark-master", "spark-worker", "spark-worker-2", "generator", "spark", "page",
    ]  # fmt: skip
    assert [row.name for row in table(load({}, CLUSTER, {}).values) if row.one_shot] == ["bucket", "topics", "submit"]


def test_it_needs_less_than_seven_gibibytes_and_the_docs_have_the_sum() -> None:
    needed = mebibytes(load({}, CLUSTER, {}).values)
    assert needed < 7 << 10
    assert f"**{needed:,} MiB**" in (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def test_every_setting_of_a_profile_is_one_of_the_file_and_differs() -> None:
    usual = read_env_file(ENV_FILE)
    profile = read_env_file(ENV_FILE.with_name(".env.cluster"))
    assert profile
    assert {name for name, value in profile.items() if usual.get(name, value) == value} == set()


def test_flag_over_variable_over_running_stack_over_profile_over_file() -> None:
    assert load({}, {}, {}).values["FLINK_TASKMANAGERS"] == "1"
    assert load({}, CLUSTER, {}).values["FLINK_TASKMANAGERS"] == "2"
    assert load({"STACK_PROFILE": "cluster"}, {}, {}).values["KAFKA_BROKERS"] == "3"
    assert load({}, {}, CLUSTER | {"FLINK_TASKMANAGERS": "3"}).values["FLINK_TASKMANAGERS"] == "3"
    running = {"FLINK_TASKMANAGERS": "3", "BACKEND": "local"}
    assert load({"STACK_FLINK_TASKMANAGERS": "4"}, CLUSTER, running).values["FLINK_TASKMANAGERS"] == "4"
    assert load({"STACK_BACKEND": "local"}, {"BACKEND": "compose"}, running).values["BACKEND"] == "compose"
    # Only the name is kept for later commands.
    assert load({}, CLUSTER, {}).chosen == CLUSTER


def test_a_profile_that_is_not_there_is_one_line_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="there is no profile 'clutser'; the profiles are: cluster"):
        load({}, {"PROFILE": "clutser"}, {})
    for name in ("../x", "", "bak~"):
        env = tmp_path / ".env"
        env.write_text(ENV_FILE.read_text(encoding="utf-8"), encoding="utf-8")
        env.with_name(".env.bak~").write_text("A=1\n", encoding="utf-8")
        if name:
            with pytest.raises(StackError, match="the profiles are: none"):
                load({}, {"PROFILE": name}, {}, env)
    env.with_name(".env.mine").write_text("KAFKA_BROKER=3\n", encoding="utf-8")
    with pytest.raises(StackError, match=r"\.env\.mine: KAFKA_BROKER is no setting of \.env"):
        load({}, {"PROFILE": "mine"}, {}, env)


def test_only_what_starts_a_stack_takes_the_flag() -> None:
    for words in (["--profile", "cluster"], ["--profile=cluster"]):
        assert split_flags(words, starts=True) == (CLUSTER, [])
        assert split_flags(["page", *words]) == ({}, ["page", *words])
    for words in (["--profile"], ["--profile="], ["--backend"]):
        with pytest.raises(StackError, match=f"{words[0].rstrip('=')} needs a value: "):
            split_flags(words, starts=True)


def test_later_commands_know_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_HOME", str(tmp_path))
    home = Home(tmp_path)
    home.claim(Topics("local", 3, "s3://faultline", "cluster"))
    down = open_stack({"BACKEND": "local"})
    assert (down.profile, len(down.copies("kafka")), down.data) == ("cluster", 3, "s3://faultline")
    assert down.topics == Topics("local", 3, "s3://faultline", "cluster")
    home.remember(Up("local", down.settings.chosen | {"FLINK_TASKMANAGERS": "3"}))
    up = open_stack({})
    assert (up.profile, len(up.copies("taskmanager"))) == ("cluster", 3)
    home.wipe()
    assert open_stack({"BACKEND": "local"}).profile == ""


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (["--profile", "none"], {}, "up.sh: there is no profile 'none'; the profiles are: cluster"),
        (["--profile"], {}, "up.sh: --profile needs a value: a name, such as cluster"),
        (
            ["--profile", "cluster"],
            {"DATA": "faultline"},
            "up.sh: setting DATA='faultline' is neither empty, nor disk, nor of",
        ),
        (["--profile", "cluster"], {"SPARK_EXECUTOR_MEMORY": "900g"}, "up.sh: only .* the stack needs 18[0-9]{5} MiB"),
        ([], {"METRICS": "1"}, "up.sh: Prometheus runs in a container: leave STACK_METRICS out, or use --backend"),
    ],
)
def test_a_start_that_is_refused_changes_nothing(
    tmp_path: Path, words: list[str], settings: dict[str, str], said: str
) -> None:
    home = tmp_path / "home"
    # A port that another program has would be refused first.
    refused = script("up.sh", *words, **own_environment(home, {"BACKEND": "local", **settings}))
    assert refused.returncode == 2
    last = refused.stderr.splitlines()[-1]
    assert re.match(said, last), refused.stderr
    assert not home.exists()


def test_other_commands_refuse_the_flag(tmp_path: Path) -> None:
    refused = script("down.sh", "--profile", "cluster", STACK_HOME=str(tmp_path), STACK_BACKEND="local")
    assert refused.returncode == 2
    assert refused.stderr.endswith("down.sh: unknown argument '--profile'; see scripts/down.sh --help\n")


def test_a_step_is_told_once_with_its_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Steps()
    for step in ("store answers", "bucket is done", "store answers"):
        steps.done(step)
    lines = capsys.readouterr().err.splitlines()
    assert [re.fullmatch(r" +\d+\.\d s  (.*)", line)[1] for line in lines] == ["store answers", "bucket is done"]  # type: ignore[index]
