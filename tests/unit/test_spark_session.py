"""Settings that the synchronizer gives to Spark, and the line that it prints for a batch."""

import socket
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

from faultline.settings import ROOT, Settings
from faultline.storage.engines import spark_environment
from faultline.storage.objects import CREDENTIALS, store_among
from spark_job.options import UserError, alone, parse
from spark_job.report import Report, batch_line
from spark_job.session import (
    GUARD,
    check_file_system,
    check_guard,
    check_java,
    check_ui_port,
    configuration,
    scratch_folder,
)
from spark_job.visits_json_synchronizer import next_step
from tests.called import process


def conf(tmp_path: Path, *flags: str, **environ: str) -> dict[str, str]:
    settings = Settings(environ={"STACK_HOME": str(tmp_path), **environ})
    return configuration(parse(list(flags), settings), settings, tmp_path)


WORKERS = {"STACK_SPARK_WORKERS": "2"}
CONTAINER = {"STACK_JOBMANAGER_HOST": "jobmanager", "STACK_SPARK_BIND_HOST": "0.0.0.0"}
WEB = {"STACK_WEB_NAMES": "localhost,127.0.0.1", "STACK_BIND_ADDRESS": "127.0.0.2"}


@pytest.mark.parametrize(
    ("flags", "environ", "settings"),
    [
        ([], {}, {"master": "local[2,4]", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}),
        ([], {}, {"port.maxRetries": "0", "cores.max": None, "ui.killEnabled": "false"}),
        ([], {"STACK_SPARK_MASTER": "spark://elsewhere:7077"}, {"master": "spark://elsewhere:7077"}),
        ([], WORKERS, {"cores.max": None, "executor.cores": "1", "executor.memory": "512m"}),
        (["--executors", "1"], WORKERS, {"cores.max": "1"}),
        # Executors in containers reach the driver by name.
        ([], WORKERS | CONTAINER, {"master": "spark://spark-master:7077", "driver.host": "spark"}),
        ([], WORKERS | CONTAINER, {"driver.bindAddress": "0.0.0.0"}),
        ([], WEB, {"ui.filters": GUARD, f"{GUARD}.param.names": "localhost,127.0.0.1,127.0.0.2"}),
    ],
)
def test_settings_of_spark(
    tmp_path: Path, flags: list[str], environ: dict[str, str], settings: dict[str, str | None]
) -> None:
    made = conf(tmp_path, *flags, **environ)
    assert {name: made.get(f"spark.{name}") for name in settings} == settings


def test_a_program_beside_the_stack_needs_neither_its_workers_nor_its_store(tmp_path: Path) -> None:
    settings = Settings(environ=WORKERS | {"STACK_DATA": "s3://faultline", "STACK_HOME": str(tmp_path)})
    chosen = alone(settings, "lab", tmp_path / "lab")
    assert (chosen.master, chosen.query, chosen.checkpoint) == ("local[2,4]", "lab", tmp_path / "lab")


def test_local_mode_reads_jars_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_ARTIFACTS", "/somewhere")
    made = conf(tmp_path)
    guard = "/somewhere/jars/web_guard/web-guard-spark.jar"
    ours, sparks = f"{guard}:/somewhere/jars/spark/*", f"{Path(pyspark.__file__).parent}/jars/*"
    assert made["spark.driver.extraClassPath"] == f"{ours}:{sparks}"
    assert "spark.jars" not in made


def test_data_in_a_store_is_reached_by_the_name_of_the_file_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any("s3a" in name for name in conf(tmp_path))
    key = tmp_path / "key"
    key.write_text("[default]\naws_access_key_id = of-somebody\naws_secret_access_key = of-nobody\n")
    monkeypatch.setenv(CREDENTIALS, str(key))
    made = conf(tmp_path, STACK_DATA="s3://bucket/below", STACK_STORE_ENDPOINT="http://127.0.0.1:8333")
    assert made["spark.hadoop.fs.s3a.endpoint"] == "http://127.0.0.1:8333"
    assert made["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert not any(word in value for value in made.values() for word in ("of-somebody", "of-nobody"))


def test_data_in_a_store_needs_its_file_system_behind_sparks_own_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv(CREDENTIALS, str(key))
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    store = {"STACK_DATA": "s3://bucket/below", "STACK_STORE_ENDPOINT": "http://127.0.0.1:8333"}
    options = parse([], Settings(store))
    with pytest.raises(
        UserError, match=r"no jar of the file system s3a:// in .*/jars/spark-s3; scripts/fetch\.sh .*--profile cluster"
    ):
        check_file_system(options)
    check_file_system(parse([], Settings({"STACK_HOME": str(tmp_path)})))
    jar = tmp_path / "jars" / "spark-s3" / "hadoop-aws.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    check_file_system(options)
    assert spark_environment(store_among([options.checkpoint]))["SPARK_DIST_CLASSPATH"] == f"{jar.parent}/*"
    assert "spark-s3" not in conf(tmp_path, **store)["spark.driver.extraClassPath"]
    # Another cluster has none of these folders.
    elsewhere = ("--master", "spark://elsewhere:7077")
    assert conf(tmp_path, *elsewhere, **store)["spark.jars"] == str(jar)
    assert conf(tmp_path, *elsewhere)["spark.jars"] == ""


def test_a_class_archive_is_used_if_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    assert "SharedArchiveFile" not in conf(tmp_path)["spark.driver.extraJavaOptions"]
    archive = tmp_path / "class-archives" / "spark.jsa"
    archive.parent.mkdir()
    archive.touch()
    flags = conf(tmp_path)["spark.driver.extraJavaOptions"].split()
    assert f"-XX:SharedArchiveFile={archive}" in flags
    # A JVM prints its warnings to stdout, which is for results.
    assert "-Xlog:disable" in flags


def test_a_cluster_gets_the_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = tmp_path / "jars" / "spark"
    jars.mkdir(parents=True)
    (jars / "b.jar").touch()
    (jars / "a.jar").touch()
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    made = conf(tmp_path, "--master", "spark://host:7077")
    assert made["spark.jars"] == f"{jars / 'a.jar'},{jars / 'b.jar'}"
    assert made["spark.driver.extraClassPath"] == str(tmp_path / "jars" / "web_guard" / "web-guard-spark.jar")
    assert made["spark.master"] == "spark://host:7077"


def test_the_stacks_own_workers_read_the_same_jars_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    made = conf(tmp_path, **WORKERS)
    assert made["spark.master"] == "spark://127.0.0.1:7077"
    assert "spark.jars" not in made
    # A class archive is of use only with the driver's own class path before all else.
    assert made["spark.executor.extraClassPath"] == made["spark.driver.extraClassPath"]
    assert f"-Djava.io.tmpdir={tmp_path}/.stack/spark-executors" in made["spark.executor.extraJavaOptions"]
    # Spark refuses a heap size here.
    assert "-Xm" not in made["spark.executor.extraJavaOptions"]


def test_another_cluster_gets_the_jars_beside_own_workers(tmp_path: Path) -> None:
    made = conf(tmp_path, "--master", "spark://elsewhere:7077", **WORKERS)
    assert "spark.jars" in made
    assert "spark.executor.extraClassPath" not in made


def test_a_missing_guard_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    with pytest.raises(UserError, match=r"web-guard-spark\.jar is missing; scripts/up\.sh"):
        check_guard()


def test_scratch_is_empty_at_each_start(tmp_path: Path) -> None:
    settings = Settings(environ={"STACK_HOME": str(tmp_path)})
    scratch = scratch_folder(parse([], settings), settings)
    (scratch / "blockmgr-of-a-killed-run").mkdir()
    assert list(scratch_folder(parse([], settings), settings).iterdir()) == []
    assert scratch.is_relative_to(tmp_path)


def test_a_taken_ui_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(UserError, match=f"port {port} for the Spark UI cannot be used"):
            check_ui_port(Settings(environ={"STACK_SPARK_UI_PORT": port}))


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UserError, match="Spark needs Java 17"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="not found on PATH"):
        check_java()


def test_a_jvm_started_by_sparks_script_ignores_sigterm() -> None:
    """The driver alone reacts to a SIGTERM to the group: `trap ''` survives exec, as Spark's script does it."""
    script = f". {ROOT}/spark_job/conf/spark-env.sh; exec grep SigIgn /proc/self/status"
    ignored = process(["bash", "-c", script]).stdout.split()[1]
    assert int(ignored, 16) & (1 << 14), "bit 14 is SIGTERM"


def test_batch_line_has_id_ranges_rows_and_seconds() -> None:
    line = batch_line(7, "visits", {"0": 100}, {"10": 4, "0": 150, "1": 140}, rows=190, seconds=0.4123, note="re-run")
    assert line == "batch 7 (re-run): visits-0 [100, 150), visits-1 [0, 140), visits-10 [0, 4), 190 rows, 0.41 s"
    assert batch_line(8, "visits", {}, {"0": 1}, rows=1, seconds=1, note="").startswith("batch 8: visits-0 [0, 1)")


def test_a_known_error_of_spark_has_a_next_step() -> None:
    lost = "Partition visits-0's offset was changed from 900 to 5. Some data may have been lost because they are not"
    assert "start clean (scripts/down.sh --wipe)" in next_step(RuntimeError(lost))
    assert next_step(RuntimeError("out of memory")) == ""


@pytest.mark.parametrize(
    ("rerun", "in_output", "note"),
    [
        (7, False, "batch 7 (re-run): "),
        (7, True, "already in the output's log: nothing written"),
        (6, True, "batch 7: "),
    ],
)
def test_a_batch_that_runs_again_says_so(
    rerun: int, in_output: bool, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SimpleNamespace(startOffset='{"visits": {"0": 100}}', endOffset='{"visits": {"0": 150}}')
    progress = SimpleNamespace(
        batchId=7, durationMs={"addBatch": 1, "triggerExecution": 2}, sources=[source], numInputRows=50
    )
    report = Report(SimpleNamespace(), "visits", rerun, rerun_in_output=in_output)  # type: ignore[arg-type]
    report.onQueryProgress(SimpleNamespace(progress=progress))  # type: ignore[arg-type]
    printed = capsys.readouterr().err
    assert note in printed
    assert "visits-0 [100, 150), 50 rows" in printed
