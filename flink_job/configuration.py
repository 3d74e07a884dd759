"""Configuration, classpath and folders of one Flink service, made again at each start.

The pip package of Flink is a whole distribution. It is not changed: its scripts, and flink_job/start.py, read
the folders of configuration, jars, logs and pid files from the environment, so each service has its own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from faultline.command import CommandError, run
from faultline.settings import Settings, artifacts, guard_jar, store_jars
from faultline.storage.data import data_store
from faultline.storage.engines import flink_environment, flink_options

TEMPLATES = Path(__file__).parent / "conf"
LEADER, STANDBY = "jobmanager", "jobmanager-2"
"""The services that run a JobManager; alone, or until another takes over, the first one leads."""
CLIENT = "client"
"""Flink's command line, which submits jobs."""
_CLUSTER = "high-availability"
"""Folder of what a JobManager that takes over needs: the job, and which checkpoints are complete."""
PROJECT = Path(__file__).resolve().parents[1]
_IMPORTED = ("faultline", "flink_job", ".env")
"""Files and folders that a job's program imports; faultline.settings reads `.env`."""


class ConfigurationError(CommandError):
    """The distribution or the connector is missing; the message names it and the next step."""


def distribution() -> Path:
    """Folder of the installed Flink distribution, which has bin/, lib/ and opt/. Raises ConfigurationError."""
    spec = importlib.util.find_spec("pyflink")
    for folder in (spec and spec.submodule_search_locations) or []:
        if (Path(folder) / "bin" / "flink").is_file():
            return Path(folder)
    raise ConfigurationError(f"{sys.executable} has no apache-flink; run this with the Flink environment's python")


def connector_jars(artifacts: Path) -> list[Path]:
    """The jars that Flink needs besides its own. Raises ConfigurationError when there is none."""
    jars = sorted((artifacts / "jars" / "flink").glob("*.jar"))
    if not jars:
        raise ConfigurationError(
            f"no connector jar in {artifacts / 'jars' / 'flink'}; scripts/up.sh --backend local fetches it"
        )
    return jars


def file_system_jars() -> list[Path]:
    """The jars of Flink's file system for an object store. Raises ConfigurationError when there is none."""
    folder = store_jars("flink")
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise ConfigurationError(
            f"no jar of the file system s3:// in {folder}; "
            "scripts/fetch.sh --backend local --profile cluster fetches it"
        )
    return jars


def web_guard() -> Path:
    """The jar that keeps foreign web pages out.

    Raises ConfigurationError when it is missing: Flink would start without it.
    """
    jar = guard_jar("flink")
    if not jar.is_file():
        raise ConfigurationError(f"the web guard {jar} is missing; scripts/up.sh --backend local makes it")
    return jar


def java_options(distribution_config: str) -> str:
    """The JVM flags in the distribution's own config.yaml: which packages Flink may open on this Java."""
    for line in distribution_config.splitlines():
        name, _, value = line.strip().partition(":")
        if name == "all":
            return value.strip()
    raise ConfigurationError("the distribution's conf/config.yaml has no env.java.opts.all; is it apache-flink 2.2?")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `@NAME@` by its value."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def configuration_values(settings: Settings, service: str, state: Path, flink: Path) -> dict[str, str]:
    """Values of the placeholders in config.yaml of a service, by name.

    On a host everything stays on BIND_ADDRESS. In a container FLINK_BIND_HOST is 0.0.0.0, and the TaskManager
    detects by itself under which of its addresses the JobManager reaches it.
    """
    host, bind = settings.jobmanager_host, settings.bind_host("flink")
    port = settings.text("FLINK_UI_PORT")
    if service == STANDBY:
        host, port = settings.service_host(STANDBY), settings.text("FLINK_STANDBY_UI_PORT")
    started = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    return {
        "JOBMANAGER_HOST": host,
        "REST_PORT": port,
        "RESOURCE_ID": f"{service}_{started}",
        "HIGH_AVAILABILITY_LINES": "\n".join(high_availability(settings)),
        "CLIENT_LINES": "\n".join(python_client(state) if service == CLIENT else []),
        "STORE_LINES": "\n".join(store_lines(settings)),
        "METRICS_LINES": "\n".join([] if service == CLIENT else metrics_lines(settings)),
        "FLINK_BIND_HOST": bind,
        "TASKMANAGER_HOST_LINE": "" if bind == "0.0.0.0" else f"taskmanager.host: {bind}",
        "FLINK_RPC_PORT": settings.text("FLINK_RPC_PORT"),
        **cluster_values(settings),
        "WEB_NAMES": ",".join(settings.web_names),
        "WEB_ORIGIN": f"http://{settings.text('BIND_ADDRESS')}:{port}",
        "TMP": str(state / "tmp"),
        "JVM_FLAGS": settings.text("JVM_FLAGS"),
        "JVM_FLAGS_SHORT": settings.text("JVM_FLAGS_SHORT"),
        "JAVA_OPTS": java_options((flink / "conf" / "config.yaml").read_text(encoding="utf-8")),
    }


def cluster_values(settings: Settings) -> dict[str, str]:
    """Values of the placeholders that do not depend on the service or the machine, by name. Raises SettingsError."""
    return {
        "FLINK_CHECKPOINTS_RETAINED": settings.text("FLINK_CHECKPOINTS_RETAINED"),
        "FLINK_TASK_HEAP": f"{settings.megabytes('FLINK_TASK_HEAP')}m",
        "FLINK_MANAGED_MEMORY": f"{settings.flink_managed_megabytes}m",
    }


def forget_other_cluster(settings: Settings) -> None:
    """Remove what highly available JobManagers remembered, when this one starts alone: at least the cluster's id.

    It submits the job from its newest checkpoint. A highly available cluster that starts later would run
    the remembered job beside it, or from an older checkpoint.
    """
    if not settings.flink_is_highly_available:
        shutil.rmtree(settings.flink_notes / _CLUSTER, ignore_errors=True)


def high_availability(settings: Settings) -> list[str]:
    """Lines of config.yaml for a standby JobManager; none when there is only one JobManager.

    ZooKeeper elects the leader and holds pointers to files in `high-availability`, both under the cluster's id. The id
    is noted on disk: without it, what they hold is never found again.
    """
    if not settings.flink_is_highly_available:
        return []
    timeout = settings.number("FLINK_LEADER_TIMEOUT_MS")
    return [
        "high-availability.type: zookeeper",
        f"high-availability.zookeeper.quorum: {settings.service_host('zookeeper')}:{settings.text('ZOOKEEPER_PORT')}",
        "high-availability.zookeeper.path.root: /faultline",
        f"high-availability.cluster-id: /{_cluster_id(settings.flink_notes / _CLUSTER)}",
        f"high-availability.storageDir: {settings.flink_checkpoints}/{_CLUSTER}",
        # ZooKeeper notices a killed leader by its silence.
        f"high-availability.zookeeper.client.session-timeout: {timeout}",
        f"high-availability.zookeeper.client.connection-timeout: {timeout}",
        "high-availability.zookeeper.client.retry-wait: 1000",
        "high-availability.zookeeper.client.max-retry-attempts: 60",
    ]


def _cluster_id(folder: Path) -> str:
    """The id in a file of this folder; the first service to ask chooses it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cluster-id"
    with tempfile.NamedTemporaryFile("w", dir=folder, encoding="ascii") as chosen:
        chosen.write(uuid.uuid4().hex)
        chosen.flush()
        # A link, since it appears with its content and never replaces another service's choice.
        with contextlib.suppress(FileExistsError):
            os.link(chosen.name, file)
    return file.read_text(encoding="ascii")


def store_lines(settings: Settings) -> list[str]:
    """Lines of config.yaml for data in an object store; none for data on a disk."""
    options = flink_options(data_store(settings))
    if options:
        # `flink savepoint JOB` needs no folder then; on a disk whoever asks for a savepoint names one.
        options["execution.checkpointing.savepoint-dir"] = f"{settings.flink_checkpoints}/savepoints"
    return [f"{name}: {value}" for name, value in options.items()]


def metrics_lines(settings: Settings) -> list[str]:
    """Lines of config.yaml with which a service answers Prometheus; none on a host, where services share its ports.

    Always in a container: a profile of Compose adds services, and changes none.
    """
    if not settings.in_container:
        return []
    return [
        "metrics.reporter.prometheus.factory.class: org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        f"metrics.reporter.prometheus.port: {settings.number('METRICS_PORT')}",
    ]


def python_client(state: Path) -> list[str]:
    """Lines of config.yaml with which `flink run --python PROGRAM` needs no further flag."""
    return [
        f"python.client.executable: {sys.executable}",
        f"python.executable: {sys.executable}",
        f"python.files: {state / 'packages'}",
    ]


def _link_packages(folder: Path) -> None:
    """Link what a job's program imports: the client copies the whole folder, which must not be the project's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in _IMPORTED:
        (folder / name).symlink_to(PROJECT / name)


def _plugins(settings: Settings, flink: Path, state: Path) -> Path:
    """The folder of plugins: the distribution's, or with data in an object store one that links them and its own."""
    if not settings.has_store:
        return flink / "plugins"
    folder = state / "plugins"
    shutil.rmtree(folder, ignore_errors=True)
    # Flink loads each plugin from a folder of its own.
    own = folder / "s3"
    own.mkdir(parents=True)
    for jar in file_system_jars():
        (own / jar.name).symlink_to(jar.resolve())
    for plugin in (flink / "plugins").iterdir():
        if plugin.is_dir():
            (folder / plugin.name).symlink_to(plugin)
    return folder


def prepare(settings: Settings, service: str) -> dict[str, str]:
    """Make the service's folders and return the environment variables that point Flink's scripts to them.

    Raises ConfigurationError and SettingsError.
    """
    flink = distribution()
    state = settings.state / f"flink-{service}"
    folders = {name: state / name for name in ("conf", "lib", "log", "pid", "tmp")}
    # Files of an earlier run in tmp are useless, and nothing else removes them after a kill.
    shutil.rmtree(folders["tmp"], ignore_errors=True)
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    if service == LEADER:
        forget_other_cluster(settings)
    if service == CLIENT:
        _link_packages(state / "packages")
    plugins = _plugins(settings, flink, state)
    values = configuration_values(settings, service, state, flink)
    for template in TEMPLATES.iterdir():
        text = render(template.read_text(encoding="utf-8"), values)
        (folders["conf"] / template.name).write_text(text, encoding="utf-8")
    for jar in folders["lib"].iterdir():
        jar.unlink()
    for jar in [*(flink / "lib").glob("*.jar"), *connector_jars(artifacts()), web_guard()]:
        link = folders["lib"] / jar.name
        if not link.exists():
            link.symlink_to(jar.resolve())
    return {
        "FLINK_HOME": str(flink),
        "FLINK_CONF_DIR": str(folders["conf"]),
        "FLINK_LIB_DIR": str(folders["lib"]),
        "FLINK_OPT_DIR": str(flink / "opt"),
        "FLINK_PLUGINS_DIR": str(plugins),
        "FLINK_LOG_DIR": str(folders["log"]),
        "FLINK_PID_DIR": str(folders["pid"]),
        **flink_environment(data_store(settings)),
    }


def main() -> int:
    """Print `export NAME=VALUE` lines for the service named on the command line."""
    for name, value in prepare(Settings(), sys.argv[1]).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    run("flink", main)
