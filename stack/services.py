"""The table of services, in the order in which they start.

A new service is a row here, `services/<name>.sh`, and an entry in docker-compose.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stack.errors import StackError


@dataclass(frozen=True)
class Service:
    """One row. `services/<program>.sh` runs it, on a host and in a container."""

    name: str
    environment: str
    """The environment whose Python and commands it uses: `tools`, `flink` or `page`."""
    image: str
    """Target in docker/Dockerfile."""
    needs: tuple[str, ...] = ()
    """Services that must answer before this one starts."""
    port: str | None = None
    """Setting of the port on which it answers; None: it is ready while it runs."""
    listens: tuple[str, ...] = ()
    """Settings of all ports on which it listens with the local backend."""
    published: str | None = None
    """Setting of the port that its container publishes."""
    page: str | None = None
    """Name of its web page, which is on the published port."""
    flags: str | None = None
    """Module that takes the further flags of a start, and checks them with --check-flags."""
    grace_seconds: float = 30
    """How long it may take to end after SIGTERM."""
    one_shot: bool = False
    """A one-shot service: it does its work and ends."""
    may_finish: bool = False
    """It may end by itself when its work is done."""
    copy_of: str = ""
    """The service whose program it runs a second time."""
    second: str = ""
    """A setting: this service is part of the stack when it is 2. Compose has a profile of that name for it."""

    @property
    def command(self) -> list[str]:
        """Its script, from the project's folder; a second one is called with its own name."""
        return [f"services/{self.copy_of or self.name}.sh", *([self.name] if self.copy_of else [])]


TABLE = (
    Service(
        "kafka", "tools", "kafka", port="KAFKA_PORT", published="KAFKA_PORT",
        listens=("KAFKA_PORT", "KAFKA_CONTAINER_PORT", "KAFKA_CONTROLLER_PORT"),
    ),
    Service(
        "zookeeper", "flink", "flink", port="ZOOKEEPER_PORT", listens=("ZOOKEEPER_PORT",), second="FLINK_JOBMANAGERS"
    ),
    # Flink's cluster needs no broker to start.
    Service(
        "jobmanager", "flink", "flink", port="FLINK_UI_PORT", published="FLINK_UI_PORT", page="Flink UI",
        listens=("FLINK_UI_PORT", "FLINK_RPC_PORT"),
    ),
    Service(
        "jobmanager-2", "flink", "flink", port="FLINK_STANDBY_UI_PORT", published="FLINK_STANDBY_UI_PORT",
        page="second Flink UI", listens=("FLINK_STANDBY_UI_PORT",), copy_of="jobmanager", second="FLINK_JOBMANAGERS",
    ),
    Service("taskmanager", "flink", "flink"),
    Service("taskmanager-2", "flink", "flink", copy_of="taskmanager", second="FLINK_TASKMANAGERS"),
    Service("topics", "tools", "generator", needs=("kafka",), one_shot=True),
    Service("generator", "tools", "generator", needs=("kafka",), flags="generator", may_finish=True),
    Service(
        "spark", "tools", "spark", needs=("kafka",), flags="spark_job.visits_json_synchronizer",
        published="SPARK_UI_PORT", page="Spark UI", listens=("SPARK_UI_PORT",),
        # It ends after the running batch, and the first batch of a long replay takes long.
        grace_seconds=120,
    ),
    # It reads, and only while somebody looks.
    Service(
        "page", "page", "page", port="PAGE_PORT", published="PAGE_PORT", page="live page", listens=("PAGE_PORT",),
        grace_seconds=10,
    ),
    Service("submit", "flink", "flink", needs=("kafka", "jobmanager"), one_shot=True),
)  # fmt: skip

JOBMANAGERS = ("jobmanager", "jobmanager-2")
LOCAL_PORTS = tuple(port for row in TABLE for port in row.listens)
"""Ports that listen on the host with the local backend."""


def table(settings: Mapping[str, str]) -> tuple[Service, ...]:
    """The rows that are part of a stack with these settings."""
    return tuple(row for row in TABLE if not row.second or settings.get(row.second) == "2")


def services(settings: Mapping[str, str]) -> tuple[Service, ...]:
    """The services of a stack that keep running."""
    return tuple(row for row in table(settings) if not row.one_shot)


def require_counts(settings: Mapping[str, str]) -> None:
    """Raise StackError when a setting asks for more copies of a service than there are rows."""
    for name in sorted({row.second for row in TABLE if row.second}):
        if settings[name] not in ("1", "2"):
            raise StackError(f"{name}={settings[name]}: choose 1 or 2 (STACK_{name}, or .env)")


def service(name: str, settings: Mapping[str, str]) -> Service:
    """Find a service of a stack by its name. Raises StackError that lists the names."""
    known = services(settings)
    for row in known:
        if row.name == name:
            return row
    other = next((row for row in TABLE if row.name == name and row.second), None)
    if other is not None:
        raise StackError(f"{name} is not part of this stack; STACK_{other.second}=2 scripts/up.sh adds it")
    raise StackError(f"there is no service '{name}'; the services are: {', '.join(row.name for row in known)}")
