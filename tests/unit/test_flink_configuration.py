"""Configuration and folders of a Flink service, without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.settings import STORE_JARS, Settings, SettingsError, guard_jar
from faultline.storage.objects import CREDENTIALS
from flink_job import configuration, start

DEFAULTS = Settings(environ={})
DISTRIBUTION_CONFIG = """env:
  java:
    opts:
      all: --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED
jobmanager:
  bind-host: localhost
"""


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    """A folder that looks like the installed distribution."""
    folder = tmp_path / "pyflink"
    for name in ("bin", "conf", "lib", "opt", "plugins/metrics"):
        (folder / name).mkdir(parents=True)
    (folder / "bin" / "flink").write_text("")
    (folder / "conf" / "config.yaml").write_text(DISTRIBUTION_CONFIG)
    (folder / "lib" / "flink-dist.jar").write_text("")
    return folder


@pytest.fixture
def prepared(distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the result of prepare() for a taskmanager of a stack in tmp_path."""
    jars = tmp_path / "artifacts" / "jars" / "flink"
    jars.mkdir(parents=True)
    (jars / "flink-sql-connector-kafka.jar").write_text("")
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path / "artifacts"))
    guard_jar("flink").parent.mkdir()
    guard_jar("flink").write_text("")
    monkeypatch.setattr(configuration, "distribution", lambda: distribution)
    return configuration.prepare(Settings({"STACK_HOME": str(tmp_path)}), "taskmanager")


IN_STORE = {"STACK_DATA": "s3://bucket/below", "STACK_STORE_ENDPOINT": "http://127.0.0.1:8333"}


def test_every_placeholder_of_the_template_is_filled_in(prepared: dict[str, str]) -> None:
    text = (Path(prepared["FLINK_CONF_DIR"]) / "config.yaml").read_text()
    settings = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert not [line for line in settings if "@" in line]
    assert f"rest.port: {DEFAULTS.text('FLINK_UI_PORT')}" in settings
    assert "jobmanager.rpc.address: 127.0.0.1" in settings
    assert "taskmanager.host: 127.0.0.1" in settings
    retained = DEFAULTS.text("FLINK_CHECKPOINTS_RETAINED")
    assert f"execution.checkpointing.num-retained: {retained}" in settings
    opened = "--add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED"
    scratch = Path(prepared["FLINK_CONF_DIR"]).parent / "tmp"
    assert f"env.java.opts.all: {opened} -Djava.io.tmpdir={scratch}" in settings
    assert f"env.java.opts.client: {DEFAULTS.text('JVM_FLAGS_SHORT')}" in settings


def test_the_guard_knows_the_names_and_no_foreign_origin_may_read(prepared: dict[str, str]) -> None:
    text = (Path(prepared["FLINK_CONF_DIR"]) / "config.yaml").read_text()
    assert "web-guard.names: 'localhost,127.0.0.1,[::1]'" in text.splitlines()
    origin = f"http://127.0.0.1:{DEFAULTS.text('FLINK_UI_PORT')}"
    assert f"web.access-control-allow-origin: {origin}" in text.splitlines()


@pytest.mark.usefixtures("prepared")
def test_flink_does_not_start_without_the_guard(tmp_path: Path) -> None:
    guard_jar("flink").unlink()
    with pytest.raises(configuration.ConfigurationError, match=r"web-guard-flink\.jar is missing; scripts/up\.sh"):
        configuration.prepare(Settings({"STACK_HOME": str(tmp_path)}), "jobmanager")


def test_a_missing_connector_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(configuration.ConfigurationError, match=r"no connector jar .*scripts/up\.sh"):
        configuration.connector_jars(tmp_path)


def test_an_unknown_distribution_is_refused() -> None:
    with pytest.raises(configuration.ConfigurationError, match=r"env\.java\.opts\.all"):
        configuration.java_options("jobmanager:\n  bind-host: localhost\n")


HIGHLY_AVAILABLE = {"STACK_FLINK_JOBMANAGERS": "2"}


def test_one_jobmanager_needs_no_zookeeper() -> None:
    assert configuration.high_availability(DEFAULTS) == []


def test_all_services_of_a_highly_available_cluster_share_its_id(tmp_path: Path) -> None:
    settings = Settings(HIGHLY_AVAILABLE | {"STACK_HOME": str(tmp_path)})
    first, second = configuration.high_availability(settings), configuration.high_availability(settings)
    assert first == second
    assert f"high-availability.zookeeper.quorum: 127.0.0.1:{DEFAULTS.text('ZOOKEEPER_PORT')}" in first
    folder = settings.flink_notes / "high-availability"
    assert f"high-availability.storageDir: {folder.as_uri()}" in first
    assert f"high-availability.cluster-id: /{(folder / 'cluster-id').read_text()}" in first
    assert [file.name for file in folder.iterdir()] == ["cluster-id"]


def test_a_jobmanager_that_starts_alone_forgets_the_highly_available_cluster(tmp_path: Path) -> None:
    # Its job continues from the newest checkpoint; the remembered job would later start from an older one.
    together = Settings(HIGHLY_AVAILABLE | {"STACK_HOME": str(tmp_path)})
    before = configuration.high_availability(together)
    configuration.forget_other_cluster(together)
    assert configuration.high_availability(together) == before
    configuration.forget_other_cluster(Settings({"STACK_HOME": str(tmp_path)}))
    assert configuration.high_availability(together) != before


def test_the_standby_has_a_page_of_its_own(distribution: Path, tmp_path: Path) -> None:
    settings = Settings(HIGHLY_AVAILABLE | {"STACK_HOME": str(tmp_path)})
    values = configuration.configuration_values(settings, "jobmanager-2", tmp_path, distribution)
    assert values["REST_PORT"] == DEFAULTS.text("FLINK_STANDBY_UI_PORT")
    assert values["WEB_ORIGIN"].endswith(f":{values['REST_PORT']}")
    assert values["RESOURCE_ID"].startswith("jobmanager-2_2")


def test_the_plugins_are_those_of_the_distribution(prepared: dict[str, str], distribution: Path) -> None:
    assert prepared["FLINK_PLUGINS_DIR"] == str(distribution / "plugins")
    assert not any(name.startswith("AWS_") for name in prepared)
    text = (Path(prepared["FLINK_CONF_DIR"]) / "config.yaml").read_text()
    assert "s3." not in text and "savepoint" not in text


@pytest.mark.usefixtures("prepared")
def test_data_in_a_store_needs_its_file_system_and_the_file_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings({"STACK_HOME": str(tmp_path)} | IN_STORE | HIGHLY_AVAILABLE)
    with pytest.raises(
        configuration.ConfigurationError,
        match=r"no jar of the file system s3:// in .*scripts/fetch\.sh .*--profile cluster",
    ):
        configuration.prepare(settings, "taskmanager")
    jar = tmp_path / "artifacts" / "jars" / STORE_JARS["flink"] / "flink-s3-fs-presto.jar"
    jar.parent.mkdir()
    jar.write_text("")
    with pytest.raises(SettingsError, match=f"{CREDENTIALS} is not set"):
        configuration.prepare(settings, "taskmanager")
    key = tmp_path / "key"
    key.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = of-nobody\n")
    monkeypatch.setenv(CREDENTIALS, str(key))
    prepared = configuration.prepare(settings, "taskmanager")
    plugins = Path(prepared["FLINK_PLUGINS_DIR"])
    assert sorted(path.name for path in plugins.iterdir()) == ["metrics", "s3"]
    assert (plugins / "s3" / jar.name).resolve() == jar.resolve()
    assert not list(Path(prepared["FLINK_LIB_DIR"]).glob("*s3*"))
    lines = (Path(prepared["FLINK_CONF_DIR"]) / "config.yaml").read_text().splitlines()
    assert {"s3.endpoint: http://127.0.0.1:8333", "s3.path.style.access: true"} <= set(lines)
    assert "high-availability.storageDir: s3://bucket/below/checkpoints/flink/high-availability" in lines
    assert "execution.checkpointing.savepoint-dir: s3://bucket/below/checkpoints/flink/savepoints" in lines
    assert prepared["AWS_CREDENTIAL_PROFILES_FILE"] == str(key)
    assert "of-nobody" not in "".join([*lines, *prepared.values()])


def test_a_service_gets_the_flags_of_its_configuration(
    prepared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    sizes = (["-Xmx1m"], ["-D", "taskmanager.numberOfTaskSlots=4"])
    monkeypatch.setattr(start, "memory", lambda *_: sizes)
    monkeypatch.setattr(start, "find_java", lambda _: Path("java"))
    monkeypatch.setenv("STACK_HOME", str(Path(prepared["FLINK_CONF_DIR"]).parents[2]))
    monkeypatch.setattr("os.execve", lambda _, command, __: started.append(command))
    start.become("taskmanager")
    start.become("jobmanager-2")
    command, of_manager = started
    assert set(DEFAULTS.text("JVM_FLAGS_SHORT").split()) < set(of_manager)
    assert "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint" in of_manager
    assert command[1] == "-Xmx1m"
    assert command[-4:] == [*sizes[1], "--configDir", prepared["FLINK_CONF_DIR"]]
    assert set(DEFAULTS.text("JVM_FLAGS").split()) < set(command)
    assert "--add-opens=java.base/java.io=ALL-UNNAMED" in command
    assert "org.apache.flink.runtime.taskexecutor.TaskManagerRunner" in command


def test_the_distribution_comes_last_on_the_class_path(tmp_path: Path) -> None:
    for name in ("web-guard.jar", "flink-dist-2.jar", "flink-csv.jar", "readme.txt"):
        (tmp_path / name).touch()
    names = [Path(each).name for each in start.class_path(tmp_path).split(":")]
    assert names == ["flink-csv.jar", "web-guard.jar", "flink-dist-2.jar"]
