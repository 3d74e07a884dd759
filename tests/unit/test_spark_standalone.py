"""Commands that start the master and the workers of Spark's cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultline.settings import Settings, SettingsError
from faultline.storage.objects import CREDENTIALS
from spark_job.options import UserError
from spark_job.session import GUARD
from spark_job.standalone import command, copy_of, environment, java_options, make_folders
from tests.called import process, program

FOLDER = Path("/stack/.stack/spark-worker-2")
TWO = {"STACK_SPARK_WORKERS": "2"}
CONTAINER = {"STACK_JOBMANAGER_HOST": "jobmanager", "STACK_SPARK_BIND_HOST": "0.0.0.0"}


def flags(words: list[str]) -> dict[str, str]:
    return dict(zip(words[1::2], words[2::2], strict=False))


def spark_options(copy: int, **environ: str) -> dict[str, str]:
    """Return the configuration that Spark reads from the options of the JVM."""
    options = java_options(Settings(TWO | environ), copy, FOLDER)
    return dict(each[2:].split("=", 1) for each in options if each.startswith("-Dspark."))


def test_a_worker_has_the_masters_address_and_a_page_of_its_own() -> None:
    words = command(Settings(TWO), 2, FOLDER)
    assert words[0] == "org.apache.spark.deploy.worker.Worker"
    assert words[-1] == Settings(TWO).spark_master == "spark://127.0.0.1:7077"
    assert flags(words[:-1]) == {
        "--host": "127.0.0.1", "--port": "0", "--webui-port": "8092", "--cores": "1", "--memory": "512m",
        "--work-dir": f"{FOLDER}/executors",
    }  # fmt: skip


def test_the_master_listens_where_workers_and_driver_look_for_it() -> None:
    words = command(Settings(TWO), 0, FOLDER)
    assert words[0] == "org.apache.spark.deploy.master.Master"
    assert flags(words) == {"--host": "127.0.0.1", "--port": "7077", "--webui-port": "8090"}
    inside = Settings(TWO | CONTAINER)
    assert flags(command(inside, 0, FOLDER))["--host"] == "spark-master"
    assert inside.spark_master == "spark://spark-master:7077"
    assert flags(command(inside, 2, FOLDER)[:-1])["--host"] == "spark-worker-2"


@pytest.mark.parametrize("memory", ["lots", "512", "0m", "-1g"])
def test_a_size_that_spark_cannot_read_is_one_line(memory: str) -> None:
    with pytest.raises(UserError, match=f"SPARK_EXECUTOR_MEMORY={memory} is not a size like 512m or 1g"):
        command(Settings(TWO | {"STACK_SPARK_EXECUTOR_MEMORY": memory}), 1, FOLDER)


@pytest.mark.parametrize("copy", [0, 1])
def test_both_pages_have_the_guard_and_change_nothing(copy: int) -> None:
    options = spark_options(copy, STACK_WEB_NAMES="localhost,127.0.0.1")
    assert options["spark.ui.filters"] == GUARD
    assert options[f"spark.{GUARD}.param.names"] == "localhost,127.0.0.1"
    assert options["spark.ui.killEnabled"] == options["spark.master.rest.enabled"] == "false"
    assert options["spark.master.ui.decommission.allow.mode"] == "DENY"
    variables = environment(Settings(TWO), copy, FOLDER, Path("/spark"))
    assert variables["SPARK_DAEMON_CLASSPATH"].endswith("web-guard-spark.jar")
    assert f"-Dspark.ui.filters={GUARD}" in variables["SPARK_DAEMON_JAVA_OPTS"].split()


def test_executors_find_the_key_of_the_store_by_the_name_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    monkeypatch.setenv(CREDENTIALS, str(file))
    settings = Settings(TWO | {"STACK_DATA": "s3://faultline", "STACK_STORE_ENDPOINT": "http://127.0.0.1:8333"})
    with pytest.raises(SettingsError, match="credentials cannot be read"):
        environment(settings, 1, FOLDER, Path("/spark"))
    file.write_text("[default]\naws_access_key_id = me\naws_secret_access_key = mine\n")
    variables = environment(settings, 1, FOLDER, Path("/spark"))
    assert variables[CREDENTIALS] == str(file)
    assert "mine" not in " ".join(variables.values())
    assert CREDENTIALS not in environment(settings, 0, FOLDER, Path("/spark")), "the master reads no data"
    assert CREDENTIALS not in environment(Settings(TWO), 1, FOLDER, Path("/spark"))


def test_only_the_master_remembers_and_only_workers_clean_up() -> None:
    master, worker = spark_options(0), spark_options(1)
    assert master["spark.deploy.recoveryMode"] == "FILESYSTEM"
    assert Path(master["spark.deploy.recoveryDirectory"]).parent == FOLDER
    assert "spark.deploy.recoveryMode" not in worker
    assert worker["spark.worker.cleanup.enabled"] == "true"
    # A worker sends a heartbeat each quarter of it: both have to know.
    assert master["spark.worker.timeout"] == worker["spark.worker.timeout"] == "10"


def test_their_jvms_end_with_sigterm() -> None:
    """The driver's spark-env.sh makes its JVM ignore SIGTERM; Spark's script must not read it for these."""
    variables = environment(Settings(TWO), 1, FOLDER, Path("/spark"))
    load = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "pyspark" / "bin"
    script = f". {load / 'load-spark-env.sh'}; exec grep SigIgn /proc/self/status"
    assert not int(process(["bash", "-c", script], variables).stdout.split()[1], 16) & (1 << 14), "bit 14 is SIGTERM"


def test_temporary_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    settings, folder = Settings({"STACK_HOME": str(tmp_path)}), tmp_path / ".stack" / "spark-worker"
    make_folders(settings, folder)
    (folder / "local" / "blockmgr-of-a-killed-run").mkdir()
    (folder / "executors").mkdir()
    make_folders(settings, folder)
    assert not list((folder / "local").iterdir())
    assert (folder / "executors").is_dir(), "the logs of executors stay"
    assert (tmp_path / ".stack" / "spark-executors").is_dir()


def test_a_name_that_is_no_service_is_one_line(tmp_path: Path) -> None:
    assert [copy_of(name, Settings(TWO)) for name in ("spark-master", "spark-worker", "spark-worker-2")] == [0, 1, 2]
    with pytest.raises(UserError, match=r"its services are: spark-master, spark-worker, spark-worker-2$"):
        copy_of("spark-worker-3", Settings(TWO))
    with pytest.raises(UserError, match=r"none \(SPARK_WORKERS=0\)"):
        copy_of("spark-master", Settings({}))
    done = program("spark_job.standalone", "spark-worker-9", **TWO, STACK_HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("spark-worker-9: there is no service 'spark-worker-9'")
    assert done.stderr.count("\n") == 1
