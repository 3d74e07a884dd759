"""Run the master or a worker of Spark's standalone cluster in the foreground: Spark's own programs, by its own script.

Usage: python -m spark_job.standalone SERVICE

SERVICE: spark-master, spark-worker, spark-worker-2 ... The synchronizer's driver asks the master for an executor on
each worker (spark_job/session.py).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from faultline.copies import name_of, setting_of
from faultline.settings import Settings, SettingsError, guard_jar
from faultline.storage.data import data_store
from faultline.storage.engines import spark_environment
from spark_job.options import UserError
from spark_job.session import CONF_DIR, GUARD, check_guard, check_java, executor_folder

MASTER, WORKER = "spark-master", "spark-worker"
_TIMEOUT_SECONDS = 10
_MEMORY = re.compile(r"[1-9]\d*[mg]")
_CLASS = {MASTER: "org.apache.spark.deploy.master.Master", WORKER: "org.apache.spark.deploy.worker.Worker"}


def command(settings: Settings, copy: int, folder: Path) -> list[str]:
    """Return the command of the master (copy 0) or of a worker. Raises UserError for a size that Spark cannot read."""
    if copy == 0:
        port, ui = settings.text("SPARK_MASTER_PORT"), settings.text("SPARK_MASTER_UI_PORT")
        return [_CLASS[MASTER], "--host", settings.service_host(MASTER), "--port", port, "--webui-port", ui]
    ui = settings.text(setting_of("SPARK_WORKER", "UI_PORT", copy))
    host, memory = settings.service_host(name_of(WORKER, copy)), settings.text("SPARK_EXECUTOR_MEMORY")
    if not _MEMORY.fullmatch(memory):
        raise UserError(f"SPARK_EXECUTOR_MEMORY={memory} is not a size like 512m or 1g; correct it")
    # One executor with one core. Any free port: only the page has to be found.
    flags = ["--host", host, "--port", "0", "--webui-port", ui, "--cores", "1", "--memory", memory]
    return [_CLASS[WORKER], *flags, "--work-dir", str(folder / "executors"), settings.spark_master]


def java_options(settings: Settings, copy: int, folder: Path) -> list[str]:
    """Return the options of its JVM; Spark reads those that begin with spark. as configuration."""
    spark = {
        # Foreign web pages get 403 (faultline/services/web_guard/), and no link ends an application or a worker.
        "spark.ui.filters": GUARD,
        f"spark.{GUARD}.param.names": ",".join(settings.web_names),
        "spark.ui.killEnabled": "false",
        "spark.master.ui.decommission.allow.mode": "DENY",
        # Applications come by their driver, not by HTTP.
        "spark.master.rest.enabled": "false",
        # A taken port is an error.
        "spark.port.maxRetries": "0",
        # A silent worker is lost after this many seconds, not after 60; both must know, since a quarter of it is the
        # worker's heartbeat.
        "spark.worker.timeout": str(_TIMEOUT_SECONDS),
    }
    if copy == 0:
        # A master that was killed finds its workers and the running driver again.
        spark |= {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(folder / "recovery"),
        }
    else:
        # The logs of executors of earlier drivers are kept for a day.
        spark |= {"spark.worker.cleanup.enabled": "true", "spark.worker.cleanup.appDataTtl": "86400"}
    return [
        settings.text("JVM_FLAGS_SHORT"),
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        "-Duser.timezone=UTC",
        *(f"-D{name}={value}" for name, value in spark.items()),
    ]


def environment(settings: Settings, copy: int, folder: Path, spark_home: Path) -> dict[str, str]:
    """Return the variables that Spark's script and its programs read. Raises SettingsError."""
    return {
        "SPARK_HOME": str(spark_home),
        "SPARK_CONF_DIR": str(CONF_DIR),
        # spark-env.sh is for the driver's JVM: this one has to end with SIGTERM.
        "SPARK_ENV_LOADED": "1",
        "SPARK_LAUNCHER_OPTS": settings.text("JVM_FLAGS_SHORT"),
        "SPARK_DAEMON_MEMORY": settings.text("SPARK_DAEMON_MEMORY"),
        "SPARK_DAEMON_JAVA_OPTS": " ".join(java_options(settings, copy, folder)),
        "SPARK_DAEMON_CLASSPATH": str(guard_jar("spark")),
        # The page binds to this address, and links to this name.
        "SPARK_LOCAL_IP": settings.bind_host("spark"),
        "SPARK_PUBLIC_DNS": settings.text("BIND_ADDRESS"),
        # Temporary files of executors.
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # Hadoop queries the system for the user's name; a container's arbitrary uid has none.
        "HADOOP_USER_NAME": os.environ.get("HADOOP_USER_NAME", "spark"),
        # Executors inherit it, and write their files to the store themselves. The master reads no data.
        **spark_environment(data_store(settings) if copy else None),
    }


def make_folders(settings: Settings, folder: Path) -> None:
    """Make its folders; temporary files of a killed run are removed."""
    for name in ("local", "tmp"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    executor_folder(settings).mkdir(parents=True, exist_ok=True)


def copy_of(name: str, settings: Settings) -> int:
    """Return which service this is: 0 the master, 1 the first worker. Raises UserError for another name."""
    names = {MASTER: 0, **{name_of(WORKER, copy): copy for copy in range(1, settings.number("SPARK_WORKERS") + 1)}}
    if name not in names or len(names) == 1:
        known = ", ".join(names) if len(names) > 1 else "none (SPARK_WORKERS=0)"
        raise UserError(f"there is no service '{name}' in Spark's cluster; its services are: {known}")
    return names[name]


def main() -> int:
    """Become Spark's program; returns the exit code when it cannot be started."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        settings = Settings()
        copy = copy_of(name, settings)
        check_java()
        check_guard()
        found = find_spec("pyspark")
        assert found is not None and found.origin is not None
        spark_home, folder = Path(found.origin).parent, settings.state / name
        make_folders(settings, folder)
        environ = {**os.environ, **environment(settings, copy, folder, spark_home)}
        program = str(spark_home / "bin" / "spark-class")
        os.execve(program, [program, *command(settings, copy, folder)], environ)
    except (UserError, SettingsError) as error:
        sys.stderr.write(f"{name or 'standalone'}: {error}\n")
    except OSError as error:
        sys.stderr.write(f"{name}: {error.filename or 'a file'}: {error.strerror}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
