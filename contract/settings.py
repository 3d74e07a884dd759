"""The stack's nouns (topics, ports, paths, intervals), read from the environment over `.env`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder: of the clone on a host, of the image in a container."""


def artifacts() -> Path:
    """Folder of the virtual environments and jars: fetched once, shared by all stacks of a clone."""
    return Path(os.environ.get("ARTIFACTS") or ROOT / ".artifacts")


def guard_jar(engine: str) -> Path:
    """The jar that refuses foreign web pages, for `spark` or `flink`; web_guard/build.py makes it."""
    return artifacts() / "jars" / "web_guard" / f"web-guard-{engine}.jar"


class SettingsError(Exception):
    """A setting is missing or has no sensible value; the message names it and the next step."""


def read_env_file(path: Path) -> dict[str, str]:
    """Read `KEY=VALUE` lines; blank lines and lines that start with `#` are skipped."""
    settings = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator and not name.startswith("#"):
            settings[name.strip()] = value.strip()
    return settings


class Settings:
    """Typed access to the settings of one stack.

    `environ` wins over the file, as in Compose; an empty environment variable counts as unset.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, env_file: Path = ROOT / ".env") -> None:
        chosen = os.environ if environ is None else environ
        self._values = read_env_file(env_file) | {name: value for name, value in chosen.items() if value}

    def text(self, name: str) -> str:
        """The setting as written. Raises SettingsError when neither the environment nor `.env` has it."""
        if name not in self._values:
            raise SettingsError(f"setting {name} is missing; add it to .env or to the environment")
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
        """Base address of the JobManager's REST API as seen from this process."""
        default = f"http://{self.text('BIND_ADDRESS')}:{self.text('FLINK_UI_PORT')}"
        return self._values.get("FLINK_REST") or default

    @property
    def web_names(self) -> list[str]:
        """Host names by which the pages of Flink and Spark may be called, here and from the containers."""
        names = [*self.text("WEB_NAMES").split(","), self.text("BIND_ADDRESS"), self._values.get("JOBMANAGER_HOST", "")]
        return list(dict.fromkeys(name for name in names if name))

    @property
    def home(self) -> Path:
        """Where this stack keeps what it writes; the project's folder unless STACK_HOME says otherwise."""
        return Path(self._values.get("STACK_HOME") or ROOT).resolve()

    @property
    def spark_checkpoints(self) -> Path:
        """Parent of the checkpoint location of each Spark query."""
        return self.home / "checkpoints" / "spark"

    @property
    def flink_checkpoints(self) -> Path:
        """Parent of `<job id>/chk-N` of each run of the Flink job."""
        return self.home / "checkpoints" / "flink"

    @property
    def output(self) -> Path:
        """Parent of the synchronizer's JSON files, a folder a query."""
        return self.home / "output"

    @property
    def ledger(self) -> Path:
        """Parent of the generator's ledgers, a folder a topic."""
        return self.home / "ledger"

    def query(self, sink: str | None = None) -> str:
        """Name of the synchronizer's query: its checkpoint and its output carry it.

        Each sink has its own, since a checkpoint belongs to one output; the default sink has the plain name.
        """
        name = self.text("SPARK_QUERY_NAME")
        chosen = sink or self.text("SPARK_SINK")
        return name if chosen == "files" else f"{name}_{chosen.replace('-', '_')}"
