"""Flags of the synchronizer: settings are the defaults, and mistakes are one line and exit code 2."""

from pathlib import Path

import pytest

from faultline.settings import Settings
from faultline.storage.engines import spark_name
from faultline.storage.objects import CREDENTIALS
from spark_job.options import AVAILABLE_NOW, SINKS, Options, parse
from tests.called import program, refused


def options(*flags: str, **environ: str) -> Options:
    return parse(list(flags), Settings(environ={"STACK_HOME": "/home/of/stack", **environ}))


def refused_options(*flags: str, **environ: str) -> str:
    return refused(lambda words: options(*words, **environ), *flags)


def test_defaults_are_the_stacks_settings() -> None:
    chosen = options()
    assert (chosen.sink, chosen.trigger, chosen.master) == ("files", "5 seconds", "local[2,4]")
    assert chosen.max_offsets_per_trigger is None
    assert chosen.hold_batch is None


@pytest.mark.parametrize("sink", SINKS)
def test_each_sink_has_its_own_checkpoint_and_output(sink: str) -> None:
    query = "visits_json" if sink == "files" else f"visits_json_{sink.replace('-', '_')}"
    chosen = options("--sink", sink)
    assert chosen.query == query
    assert chosen.checkpoint == Path("/home/of/stack/checkpoints/spark") / query
    assert chosen.output == Path("/home/of/stack/output") / query


def test_paths_can_be_given(tmp_path: Path) -> None:
    chosen = options("--checkpoint", str(tmp_path / "c"), "--output", "some/output")
    assert chosen.checkpoint == tmp_path / "c"
    assert chosen.output == Path.cwd() / "some/output"


def test_settings_come_from_the_environment_too() -> None:
    chosen = options(
        STACK_SPARK_SINK="foreach-append", STACK_SPARK_TRIGGER="1 second", STACK_SPARK_MAX_OFFSETS_PER_TRIGGER="50"
    )
    assert (chosen.sink, chosen.trigger, chosen.max_offsets_per_trigger) == ("foreach-append", "1 second", 50)


@pytest.mark.parametrize("trigger", ["5 seconds", "1 second", "500 milliseconds", "2 minutes", AVAILABLE_NOW])
def test_triggers(trigger: str) -> None:
    assert options("--trigger", trigger).trigger == trigger


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]", "spark://host:7077", "yarn"])
def test_masters(master: str) -> None:
    assert options("--master", master).master == master


@pytest.mark.parametrize(
    "flags",
    [
        ("--sink", "kafka"),
        ("--trigger", "soon"),
        ("--trigger", "5"),
        ("--max-offsets-per-trigger", "0"),
        ("--max-offsets-per-trigger", "ten"),
        ("--master", "elsewhere"),
        ("--hold-batch", "-1"),
        ("--executors", "0"),
        ("--executors", "1"),
        ("--hold-batch", "last"),
        ("--wait-seconds", "-1"),
        ("--stop-seconds", "nan"),
        ("--nonsense",),
    ],
)
def test_a_mistake_is_one_line_and_code_2(flags: tuple[str, ...]) -> None:
    said = refused_options(*flags)
    assert said.startswith("synchronizer: ")
    assert said.count("\n") == 1


def test_executors_are_those_of_the_stacks_workers() -> None:
    two = {"STACK_SPARK_WORKERS": "2"}
    assert options(**two).executors is None
    assert options("--executors", "1", **two).executors == 1
    for flags, words in (
        (("--executors", "3"), "--executors 3: there are 2 workers, with one executor each; --help"),
        (("--executors", "1", "--master", "local[2]"), "tasks run on local[2], which is not the stack's own cluster"),
    ):
        assert words in refused_options(*flags, **two)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"STACK_SPARK_SINK": "kafka"}, "SPARK_SINK=kafka is unknown"),
        ({"STACK_KAFKA_BOOTSTRAP": "127.0.0.1:9"}, "Kafka at 127.0.0.1:9 does not answer"),
    ],
)
def test_what_is_missing_is_one_line_before_any_jvm(environ: dict[str, str], message: str, tmp_path: Path) -> None:
    environ = {"STACK_HOME": str(tmp_path), **environ}
    done = program("spark_job.visits_json_synchronizer", "--wait-seconds", "0.5", **environ)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("flags", "code"), [(["--sink", "foreach-append"], 0), (["--sink", "none"], 2)])
def test_flags_can_be_checked_alone(flags: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        options("--check-flags", *flags)
    assert ended.value.code == code
    assert capsys.readouterr().err.count("\n") == (code == 2)


@pytest.fixture
def in_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    key = tmp_path / "key"
    key.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv(CREDENTIALS, str(key))
    # What a word on the command line names is in the store of the environment.
    monkeypatch.setenv("STACK_STORE_ENDPOINT", "http://127.0.0.1:1")
    return {"STACK_DATA": "s3://bucket/below", "STACK_STORE_ENDPOINT": "http://127.0.0.1:1"}


def test_data_in_a_store_has_its_notes_on_a_disk(in_store: dict[str, str]) -> None:
    chosen = options(**in_store)
    assert str(chosen.checkpoint) == "s3://bucket/below/checkpoints/spark/visits_json"
    assert chosen.notes == Path("/home/of/stack/checkpoints/spark/visits_json")
    assert spark_name(chosen.checkpoint) == "s3a://bucket/below/checkpoints/spark/visits_json"
    assert spark_name(chosen.output) == "s3a://bucket/below/output/visits_json"
    on_disk = options()
    assert spark_name(on_disk.output) == "/home/of/stack/output/visits_json"
    assert on_disk.notes == on_disk.checkpoint


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--sink", "foreach-append"), "--sink foreach-append needs folders"),
        (("--checkpoint", "s3://bucket/elsewhere"), "not below s3://bucket/below; nothing locks it"),
    ],
)
def test_what_a_store_cannot_keep_is_refused(in_store: dict[str, str], flags: tuple[str, ...], said: str) -> None:
    assert said in refused_options(*flags, **in_store)
