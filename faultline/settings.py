"""The stack's settings (topics, ports, paths, intervals): `.env`, overridden by variables that begin with STACK_.

A variable without that prefix is never read: KAFKA_PORT, SPARK_HOME and others may belong to other programs. Runs on
Python 3.9 too, since the process layer on the host imports it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from faultline.command import CommandError
from faultline.copies import name_of, setting_of

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder: of the clone on a host, of the image in a container."""


PREFIX = "STACK_"
"""The prefix of the variables that hold settings, here and in `.env`: STACK_KAFKA_PORT holds KAFKA_PORT."""


def artifacts() -> Path:
    """Folder of the virtual environments and jars: fetched once, shared by all stacks of a clone."""
    return Path(os.environ.get(PREFIX + "ARTIFACTS") or ROOT / ".artifacts")


STORE_JARS = {"flink": "flink-s3", "spark": "spark-s3"}
"""The group of jars with an engine's file system for an object store; only stacks whose data is in one need them."""


def store_jars(engine: str) -> Path:
    """Folder of the jars with the file system of `spark` or `flink` for an object store."""
    return artifacts() / "jars" / STORE_JARS[engine]


STORE_CREDENTIALS = "credentials"
"""The file with the key, in the folder of the stack's own object store."""


def guard_jar(engine: str) -> Path:
    """The jar that refuses foreign web pages, for `spark` or `flink`, made by faultline/services/web_guard/."""
    return artifacts() / "jars" / "web_guard" / f"web-guard-{engine}.jar"


def class_archive(program: str) -> Path:
    """The file of classes that the JVM of a program maps at its start; spark_job/class_archive.py writes Spark's."""
    return artifacts() / "class-archives" / f"{program}.jsa"


DISK = "disk"
"""The value of DATA that means the stack's folders, as an empty one does: a variable that is empty sets nothing."""
_BUCKET = re.compile(r"s3://[^/]+(/[^/]+)*")


def own_store(values: Mapping[str, str]) -> bool:
    """Return whether a stack has an object store of its own: its data is in one, and no endpoint is named."""
    return bool(store_of_data(values)) and not values.get("STORE_ENDPOINT")


def store_of_data(values: Mapping[str, str]) -> str:
    """The setting DATA when it names an object store, without a slash at its end; empty for the disk."""
    data = values.get("DATA", "").rstrip("/")
    return "" if data == DISK else data


HASHMAP, ROCKSDB = "hashmap", "rocksdb"
"""The values of FLINK_STATE_BACKEND."""
_MEGABYTES = re.compile(r"([1-9]\d*)m")


class SettingsError(CommandError):
    """A setting is missing or has no sensible value; the message names it and the next step."""


def read_env_file(path: Path) -> dict[str, str]:
    """Read `KEY=VALUE` lines: settings by their names without the prefix. Blank lines and comments are skipped.

    Raises SettingsError for a file that is not UTF-8.
    """
    settings = {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: {error.reason} at byte {error.start}; save it as UTF-8") from None
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not name.startswith("#"):
            settings[_plain(name.strip())] = value.strip()
    return settings


def read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Read the settings in an environment: names without their prefix. An empty variable counts as unset."""
    return {_plain(name): value for name, value in environ.items() if name.startswith(PREFIX) and value}


def as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Write settings as variables for another program."""
    return {PREFIX + name: value for name, value in settings.items()}


def _plain(name: str) -> str:
    return name[len(PREFIX) :] if name.startswith(PREFIX) else name


class Settings:
    """Typed access to the settings of one stack; STACK_ variables of `environ` win over the file."""

    def __init__(self, environ: Mapping[str, str] | None = None, env_file: Path = ROOT / ".env") -> None:
        chosen = os.environ if environ is None else environ
        self._values = {**read_env_file(env_file), **read_environment(chosen)}

    def text(self, name: str) -> str:
        """The setting as written. Raises SettingsError when neither the environment nor `.env` has it."""
        if name not in self._values:
            raise SettingsError(f"setting {name} is missing; add {PREFIX}{name} to .env, or set that variable")
        return self._values[name]

    def number(self, name: str) -> int:
        """The setting as an integer. Raises SettingsError when it is missing or not a number."""
        value = self.text(name)
        try:
            return int(value)
        except ValueError:
            raise SettingsError(f"setting {name}={value!r} is not a whole number; correct it in .env") from None

    def choice(self, name: str, *values: str) -> str:
        """The setting, which must be one of these values. Raises SettingsError."""
        value = self.text(name)
        if value not in values:
            raise SettingsError(f"setting {name}={value!r} is not one of {', '.join(values)}; correct it in .env")
        return value

    def megabytes(self, name: str) -> int:
        """The setting, a size such as 320m, in megabytes. Raises SettingsError."""
        found = _MEGABYTES.fullmatch(self.text(name))
        if found is None:
            raise SettingsError(f"setting {name}={self.text(name)!r} is not a size like 320m; correct it in .env")
        return int(found[1])

    @property
    def flink_state_backend(self) -> str:
        """Backend of the Flink job's state while the job runs: HASHMAP or ROCKSDB. Raises SettingsError."""
        return self.choice("FLINK_STATE_BACKEND", HASHMAP, ROCKSDB)

    @property
    def flink_unaligned(self) -> bool:
        """True when the Flink job's barriers may overtake records. Raises SettingsError."""
        return self.choice("FLINK_UNALIGNED", "false", "true") == "true"

    @property
    def flink_managed_megabytes(self) -> int:
        """A TaskManager's managed memory: for buffers of windows, and for RocksDB when it keeps the state."""
        rocksdb = self.megabytes("FLINK_ROCKSDB_MEMORY") if self.flink_state_backend == ROCKSDB else 0
        return self.megabytes("FLINK_MANAGED_MEMORY") + rocksdb

    @property
    def bootstrap(self) -> str:
        """`host:port` of each broker as seen from this process, with commas between them."""
        return self._values.get("KAFKA_BOOTSTRAP") or ",".join(map(self.broker_address, self.brokers))

    @property
    def brokers(self) -> range:
        """Numbers of the brokers, which are their node ids too: 1, or 1 to 3."""
        return range(1, self.number("KAFKA_BROKERS") + 1)

    @property
    def replicas(self) -> int:
        """Number of brokers that hold each record: all of them."""
        return len(self.brokers)

    @property
    def least_in_sync(self) -> int:
        """Number of brokers that must have a record before it is acknowledged: a majority."""
        return self.replicas // 2 + 1

    def broker_address(self, broker: int) -> str:
        """`host:port` of one broker as seen from this process: containers use the listener for containers."""
        port = setting_of("KAFKA", "CONTAINER_PORT" if self.in_container else "PORT", broker)
        return f"{self.service_host(name_of('kafka', broker))}:{self.text(port)}"

    @property
    def has_own_store(self) -> bool:
        """True when an object store is part of the stack."""
        return own_store(self._values)

    @property
    def store_endpoint(self) -> str:
        """Address of the object store as seen from this process, such as `http://HOST:PORT`. Raises SettingsError."""
        if self.has_own_store:
            return f"http://{self.service_host('store')}:{self.text('STORE_PORT')}"
        value = self.text("STORE_ENDPOINT")
        if not value.startswith(("http://", "https://")):
            raise SettingsError(f"setting STORE_ENDPOINT={value!r} is not of the form http://HOST:PORT")
        return value.rstrip("/")

    @property
    def store_folder(self) -> Path:
        """Folder of the stack's own object store: its data and its key."""
        return self.home / "store"

    @property
    def store_credentials(self) -> Path:
        """The file with the key of the stack's own object store."""
        return self.store_folder / STORE_CREDENTIALS

    @property
    def flink_rest(self) -> str:
        """Base address of each JobManager's REST API as seen from this process, with commas between them."""
        addresses = [f"http://{self.jobmanager_host}:{self.text('FLINK_UI_PORT')}"]
        if self.flink_is_highly_available:
            addresses.append(f"http://{self.service_host('jobmanager-2')}:{self.text('FLINK_STANDBY_UI_PORT')}")
        return self._values.get("FLINK_REST") or ",".join(addresses)

    @property
    def flink_is_highly_available(self) -> bool:
        """True when a standby JobManager and ZooKeeper are part of the stack."""
        return self.number("FLINK_JOBMANAGERS") > 1

    @property
    def spark_master(self) -> str:
        """The Spark master of the synchronizer, whose tasks run in its own process or on the workers of the stack."""
        if not self.has_spark_workers:
            return self.text("SPARK_MASTER")
        return f"spark://{self.service_host('spark-master')}:{self.text('SPARK_MASTER_PORT')}"

    @property
    def has_spark_workers(self) -> bool:
        """True when a cluster of Spark is part of the stack."""
        return self.number("SPARK_WORKERS") > 0

    @property
    def values(self) -> dict[str, str]:
        """All settings, by their names without the prefix."""
        return dict(self._values)

    def changed(self, values: Mapping[str, str]) -> Settings:
        """The same settings, with other values for some of them."""
        changed = Settings(environ={}, env_file=Path(os.devnull))
        changed._values = {**self._values, **values}
        return changed

    @property
    def web_names(self) -> list[str]:
        """Host names under which the web pages of Flink and Spark answer, here and from the containers."""
        names = [*self.text("WEB_NAMES").split(","), self.text("BIND_ADDRESS"), self._values.get("JOBMANAGER_HOST", "")]
        names += [self.service_host("jobmanager-2")] if self.flink_is_highly_available else []
        # Prometheus asks the driver by this name.
        names += [self.service_host("spark")]
        return list(dict.fromkeys(name for name in names if name))

    @property
    def home(self) -> Path:
        """Folder where this stack keeps the files it writes; the project's folder unless STACK_HOME says otherwise."""
        return Path(self._values.get("HOME") or ROOT).resolve()

    @property
    def jobmanager_host(self) -> str:
        """Host of the JobManager as seen from this process."""
        return self._values.get("JOBMANAGER_HOST") or self.text("BIND_ADDRESS")

    def service_host(self, service: str) -> str:
        """Host of another service as seen from this process: its name in containers, BIND_ADDRESS elsewhere."""
        return service if self.in_container else self.text("BIND_ADDRESS")

    @property
    def in_container(self) -> bool:
        """True when services have host names of their own."""
        return bool(self._values.get("JOBMANAGER_HOST"))

    @property
    def state(self) -> Path:
        """Folder of a stack's logs and run state, and of service files that have no other folder."""
        return self.home / ".stack"

    def bind_host(self, service: str) -> str:
        """Address on which a service listens: loopback on a host, all addresses in a container."""
        return self._values.get(f"{service.upper()}_BIND_HOST") or self.text("BIND_ADDRESS")

    @property
    def data(self) -> str:
        """URI of the folder below which the engines keep checkpoints and output. Raises SettingsError."""
        return self._location()

    @property
    def has_store(self) -> bool:
        """True when that folder is in an object store. Raises SettingsError."""
        return not self.data.startswith("file:")

    @property
    def spark_checkpoints(self) -> str:
        """URI of the parent of the checkpoint location of each Spark query."""
        return self._location("checkpoints", "spark")

    @property
    def flink_checkpoints(self) -> str:
        """URI of the parent of `<job id>/chk-N` of each run of a Flink job."""
        return self._location("checkpoints", self.text("FLINK_CHECKPOINTS"))

    @property
    def spark_outputs(self) -> str:
        """URI of the parent of the synchronizer's JSON files, one folder per query."""
        return self._location("output")

    @property
    def spark_notes(self) -> Path:
        """Folder for what this stack notes of its Spark queries, by the name of the query: settings, locks, holds."""
        return self.home / "checkpoints" / "spark"

    @property
    def flink_notes(self) -> Path:
        """Folder for what this stack notes of its Flink jobs: their settings, and the id of the cluster."""
        return self.home / "checkpoints" / self.text("FLINK_CHECKPOINTS")

    @property
    def newest_verdict(self) -> Path:
        """The file with the newest verdict on this stack."""
        return self.home / "output" / "verdict.json"

    def _location(self, *names: str) -> str:
        """URI of a folder of the engines' data: below DATA, an object store, or below the home when that is empty."""
        store = store_of_data(self._values)
        if not store:
            return self.home.joinpath(*names).as_uri()
        if not _BUCKET.fullmatch(store):
            raise SettingsError(
                f"setting DATA={store!r} is neither empty, nor {DISK}, nor of the form s3://BUCKET/PATH"
            )
        return "/".join((store, *names))

    @property
    def ledger(self) -> Path:
        """Parent of the generator's ledgers, one folder per topic."""
        return self.home / "ledger"

    def query(self, sink: str | None = None) -> str:
        """Name of the synchronizer's query, and of its checkpoint and output folders.

        Each sink has its own, since a checkpoint belongs to one output; the default sink has the plain name.
        """
        name = self.text("SPARK_QUERY_NAME")
        chosen = sink or self.text("SPARK_SINK")
        return name if chosen == "files" else f"{name}_{chosen.replace('-', '_')}"
