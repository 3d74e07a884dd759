"""The stack's settings (topics, ports, paths, intervals): `.env`, overridden by variables that begin with STACK_.

A variable without that prefix is never read: KAFKA_PORT, SPARK_HOME and others may belong to other programs. Runs on
Python 3.9 too, since the process layer on the host imports it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder: of the clone on a host, of the image in a container."""


PREFIX = "STACK_"
"""The prefix of environment variables that set our settings: STACK_KAFKA_PORT sets KAFKA_PORT."""


def artifacts() -> Path:
    """Folder of the virtual environments and jars: fetched once, shared by all stacks of a clone."""
    return Path(os.environ.get(PREFIX + "ARTIFACTS") or ROOT / ".artifacts")


def guard_jar(engine: str) -> Path:
    """The jar that refuses foreign web pages, for `spark` or `flink`; web_guard/build.py makes it."""
    return artifacts() / "jars" / "web_guard" / f"web-guard-{engine}.jar"


def class_archive(program: str) -> Path:
    """The file of classes that the JVM of a program maps at its start; spark_job/class_archive.py writes Spark's."""
    return artifacts() / "class-archives" / f"{program}.jsa"


class SettingsError(Exception):
    """A setting is missing or has no sensible value; the message names it and the next step."""


def read_env_file(path: Path) -> dict[str, str]:
    """Read `KEY=VALUE` lines; blank lines and lines that start with `#` are skipped."""
    settings = {}
    for line in path.read_text(encoding="utf-8").splitlines():
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
            raise SettingsError(f"setting {name} is missing; add it to .env, or set {PREFIX}{name}")
        return self._values[name]

    def number(self, name: str) -> int:
        """The setting as an integer. Raises SettingsError when it is missing or not a number."""
        value = self.text(name)
        try:
            return int(value)
        except ValueError:
            raise SettingsError(f"setting {name}={value!r} is not a whole number; correct it in .env") from None

    @property
    def bootstrap(self) -> str:
        """`host:port` of the broker as seen from this process."""
        return self._values.get("KAFKA_BOOTSTRAP") or f"{self.text('BIND_ADDRESS')}:{self.text('KAFKA_PORT')}"

    @property
    def flink_rest(self) -> str:
        """Base address of each JobManager's REST API as seen from this process, with commas between them."""
        addresses = [f"http://{self.jobmanager_host}:{self.text('FLINK_UI_PORT')}"]
        if self.flink_is_highly_available:
            addresses.append(f"http://{self.service_host('jobmanager-2')}:{self.text('FLINK_STANDBY_UI_PORT')}")
        return self._values.get("FLINK_REST") or ",".join(addresses)

    @property
    def flink_is_highly_available(self) -> bool:
        """Whether a standby JobManager and ZooKeeper are part of the stack."""
        return self.number("FLINK_JOBMANAGERS") > 1

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
        return list(dict.fromkeys(name for name in names if name))

    @property
    def home(self) -> Path:
        """Where this stack keeps what it writes; the project's folder unless STACK_HOME says otherwise."""
        return Path(self._values.get("HOME") or ROOT).resolve()

    @property
    def jobmanager_host(self) -> str:
        """Host of the JobManager as seen from this process."""
        return self._values.get("JOBMANAGER_HOST") or self.text("BIND_ADDRESS")

    def service_host(self, service: str) -> str:
        """Host of another service as seen from this process: its name in containers, BIND_ADDRESS elsewhere."""
        return service if self._values.get("JOBMANAGER_HOST") else self.text("BIND_ADDRESS")

    @property
    def state(self) -> Path:
        """Folder of a stack's logs and run state, and of service files that have no other folder."""
        return self.home / ".stack"

    def bind_host(self, service: str) -> str:
        """Address on which a service listens: loopback on a host, all addresses in a container."""
        return self._values.get(f"{service.upper()}_BIND_HOST") or self.text("BIND_ADDRESS")

    @property
    def spark_checkpoints(self) -> Path:
        """Parent of the checkpoint location of each Spark query."""
        return self.home / "checkpoints" / "spark"

    @property
    def flink_checkpoints(self) -> Path:
        """Parent of `<job id>/chk-N` of each run of a Flink job."""
        return self.home / "checkpoints" / self.text("FLINK_CHECKPOINTS")

    @property
    def output(self) -> Path:
        """Parent of the synchronizer's JSON files, one folder per query."""
        return self.home / "output"

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
