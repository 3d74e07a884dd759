"""The Spark session: every setting that matters, with its reason."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from faultline.command import first_line
from faultline.java import NoJavaError, find_java
from faultline.ports import refusal
from faultline.settings import Settings, artifacts, class_archive, guard_jar, store_jars
from faultline.storage.engines import spark_environment, spark_options
from faultline.storage.objects import ObjectStore, store_among
from spark_job.options import Options, UserError

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set when spark-submit started this program: its JVM runs already, with the submitter's configuration."""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""A JVM's warnings about a class archive would go to stdout, which is for results."""
CONF_DIR = Path(__file__).with_name("conf")
UTC = "-Duser.timezone=UTC"
"""The JVM's flag for its time zone."""
SILENT_EXECUTOR = {
    "spark.executor.heartbeatInterval": "2s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
}
"""A silent executor is lost after 20 s, not after two minutes, and somebody looks each 5 s, not each minute."""
METRICS = {
    "spark.metrics.conf.driver.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.driver.sink.prometheusServlet.path": "/metrics/prometheus",
    # The names of metrics begin with it; Spark's default is the id of the application, new at each start.
    "spark.metrics.namespace": "spark",
    "spark.sql.streaming.metricsEnabled": "true",
}
"""In a container the UI also answers Prometheus: a profile of Compose adds services, and changes none."""
GUARD = "faultline.web.SparkGuard"
"""The servlet filter before the UI, in the jar of faultline/services/web_guard/."""


def configuration(options: Options, settings: Settings, scratch: Path) -> dict[str, str]:
    """Return Spark's configuration for this run."""
    local = options.master.startswith("local")
    jars = artifacts() / "jars" / "spark"
    bind = settings.bind_host("spark")
    conf = {
        "spark.app.name": options.query,
        "spark.master": options.master,
        "spark.driver.memory": settings.text("SPARK_DRIVER_MEMORY"),
        "spark.driver.extraJavaOptions": " ".join(
            [
                settings.text("JVM_FLAGS"),
                *_archive_flags(),
                # Reserve the whole heap at the start (memory is touched only when needed): no full GC to grow it.
                f"-Xms{settings.text('SPARK_DRIVER_MEMORY')}",
                "-XX:MetaspaceSize=192m",
                f"-Djava.io.tmpdir={scratch}",
                # Java looks up a user's home in /etc/passwd, which has no entry for a container's arbitrary uid.
                f"-Duser.home={scratch}",
                UTC,
            ]
        ),
        # Event times are text here, but the machine's time zone must never reach an output.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.port": settings.text("SPARK_UI_PORT"),
        # Foreign web pages get 403 (faultline/services/web_guard/).
        "spark.ui.filters": GUARD,
        f"spark.{GUARD}.param.names": ",".join(settings.web_names),
        # The kill links need no token, and are not needed: scripts/stop.sh ends the query.
        "spark.ui.killEnabled": "false",
        # A taken port is an error; Spark must not try the next port, since links would be wrong.
        "spark.port.maxRetries": "0",
        # Streaming does not support it, and warns about it at each start.
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # The UI keeps its history on the heap; a query that runs for days must not fill it.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.sql.streaming.numRecentProgressUpdates": "20",
        "spark.local.dir": str(scratch),
        # The start script prepares Ivy in the home folder, even with nothing to resolve.
        "spark.jars.ivy": str(scratch / "ivy"),
        # No Hive metastore, no warehouse folder in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        # The checkpoint keeps this many batches for inspection.
        "spark.sql.streaming.minBatchesToRetain": "100",
        # Logs are written to a temporary file and renamed. Spark's default for local disks renames through
        # Hadoop's FileContext, which starts a `readlink` process for each path it renames: 24 per batch, most of
        # a small batch's time. This manager renames as atomically; the check it lacks, that no other query
        # writes the same log, is what the lock on the checkpoint is for.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # query.stop() times out on a batch that does not react, instead of waiting forever.
        "spark.sql.streaming.stopTimeout": "60s",
    }
    if settings.in_container:
        conf |= METRICS
    # The UI starts before spark.jars are loaded.
    conf["spark.driver.extraClassPath"] = str(guard_jar("spark"))
    conf |= spark_options(_store(options), scratch)
    own_workers = settings.has_spark_workers and options.master == settings.spark_master
    if local or own_workers:
        # Read in place: spark.jars would copy each jar first.
        conf["spark.driver.extraClassPath"] += f":{jars / '*'}"
        # Spark's start script puts its configuration folder before its jars, and a class archive cannot have classes
        # of jars behind a folder.
        conf["spark.driver.extraClassPath"] += f":{Path(pyspark.__file__).parent / 'jars' / '*'}"
    if local:
        # Driver and executor are one process: other processes need only the UI.
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
    elif own_workers:
        conf |= _on_workers(settings, conf["spark.driver.extraClassPath"])
        if options.executors is not None:
            # Each has one core.
            conf["spark.cores.max"] = str(options.executors)
    else:
        # Executors of a cluster's operator have them in their image.
        if _SUBMITTED not in os.environ:
            folders = [jars, *([store_jars("spark")] if _store(options) else [])]
            conf["spark.jars"] = ",".join(str(jar) for folder in folders for jar in sorted(folder.glob("*.jar")))
        conf["spark.driver.bindAddress"] = bind
        if bind not in {"0.0.0.0", "::"}:
            conf["spark.driver.host"] = bind
    return conf


def _on_workers(settings: Settings, class_path: str) -> dict[str, str]:
    """For executors on the stack's own workers, which see the same folders as the driver."""
    folder = executor_folder(settings)
    return {
        "spark.driver.host": settings.service_host("spark"),
        "spark.driver.bindAddress": settings.bind_host("spark"),
        # One on each worker.
        "spark.executor.cores": "1",
        "spark.executor.memory": settings.text("SPARK_EXECUTOR_MEMORY"),
        "spark.executor.extraClassPath": class_path,
        "spark.executor.extraJavaOptions": " ".join(
            [
                settings.text("JVM_FLAGS"),
                *_archive_flags(),
                f"-Djava.io.tmpdir={folder}",
                f"-Duser.home={folder}",
                "-Duser.timezone=UTC",
            ]
        ),
        **SILENT_EXECUTOR,
        # What executors print is in files of their worker.
        "spark.executor.logs.rolling.strategy": "size",
        "spark.executor.logs.rolling.maxSize": str(1 << 20),
        "spark.executor.logs.rolling.maxRetainedFiles": "1",
    }


def executor_folder(settings: Settings) -> Path:
    """Temporary files of the executors' JVMs; a worker makes it before it starts one."""
    return settings.state / "spark-executors"


def _store(options: Options) -> ObjectStore | None:
    return store_among([options.checkpoint, options.output])


def _archive_flags() -> list[str]:
    """JVM flags for the class archive, if there is one; with another Java the JVM ignores the file."""
    archive = class_archive("spark")
    if not archive.is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}", *QUIET]


def scratch_folder(options: Options, settings: Settings) -> Path:
    """Return an empty folder for Spark's temporary files; files of a killed run are removed."""
    scratch = settings.state / "spark" / options.query
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"folder {scratch} cannot be made: {error.strerror}; it is for Spark's temporary files"
        ) from None
    return scratch


def check_ui_port(settings: Settings) -> None:
    """Raise UserError when the UI's port is taken, before a JVM is started for nothing."""
    host = settings.bind_host("spark")
    port = settings.number("SPARK_UI_PORT")
    if reason := refusal(host, port):
        raise UserError(f"port {port} for the Spark UI cannot be used at {host}: {reason}; set SPARK_UI_PORT")


def check_guard() -> None:
    """Raise UserError when the UI's guard is missing: Spark would fail with a hundred lines of stack trace."""
    jar = guard_jar("spark")
    if not jar.is_file():
        raise UserError(f"the web guard {jar} is missing; scripts/up.sh --backend local makes it")


def check_file_system(options: Options) -> None:
    """Raise UserError when the jars for data in an object store are missing: the query would fail without a word."""
    folder = store_jars("spark")
    if _store(options) is not None and not any(folder.glob("*.jar")):
        raise UserError(
            f"no jar of the file system s3a:// in {folder}; "
            "scripts/fetch.sh --backend local --profile cluster fetches it"
        )


def check_java() -> None:
    """Raise UserError when no Java is found."""
    try:
        find_java(os.environ)
    except NoJavaError as error:
        needed = Settings().text("JAVA_VERSION")
        raise UserError(f"Spark needs Java {needed}: {error}; install it or set JAVA_HOME") from None


def start_session(options: Options, settings: Settings, lock: int) -> SparkSession:
    """Start the JVM and the session. The JVM holds the file descriptor `lock` open as long as it lives.

    Raises UserError when Java or the session does not start; the reason is above it on stderr.
    """
    conf = configuration(options, settings, scratch_folder(options, settings))
    os.environ.update(spark_environment(_store(options)))
    return launch(conf, settings, {"pass_fds": (lock,)})


def launch(conf: dict[str, str], settings: Settings, popen: dict[str, Any]) -> SparkSession:
    """Start the JVM, with `popen` as further arguments of its `subprocess.Popen`, and a session in it.

    Raises UserError when Java or the session does not start; the reason is above it on stderr.
    """
    spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    os.environ["SPARK_CONF_DIR"] = str(CONF_DIR)
    # The UI binds to this address; without it, to all of them.
    os.environ["SPARK_LOCAL_IP"] = settings.bind_host("spark")
    # Spark's other pages link to it; in a container the driver has a name that no browser of the host knows.
    os.environ["SPARK_PUBLIC_DNS"] = settings.text("BIND_ADDRESS")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Hadoop queries the system for the user's name; a container's arbitrary uid has none.
    os.environ.setdefault("HADOOP_USER_NAME", "spark")
    os.environ.setdefault("SPARK_USER", os.environ["HADOOP_USER_NAME"])
    try:
        gateway = launch_gateway(spark_conf, popen)  # type: ignore[no-untyped-call]
        if _SUBMITTED in os.environ:
            # What a cluster's operator chose (master, image, executors) wins over what suits this machine.
            spark_conf = SparkConf(loadDefaults=True, _jvm=gateway.jvm)
            for name, value in conf.items():
                spark_conf.setIfMissing(name, value)
        context = SparkContext(conf=spark_conf, gateway=gateway)
    except PySparkException as error:
        raise UserError(f"Spark did not start: {first_line(error)}") from None
    except Exception as error:
        # py4j wraps every error of the JVM: an unknown master, too little memory.
        raise UserError(f"Spark did not start: {first_line(error)}") from None
    return SparkSession(context)
