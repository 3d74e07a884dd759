"""The table of services, in the order in which they start.

A new service is a row here, `services/<name>.sh`, and an entry in docker-compose.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass

from stack.errors import StackError


@dataclass(frozen=True)
class Service:
    """One row. `services/<name>.sh` runs it, on a host and in a container."""

    name: str
    environment: str
    """The environment whose Python and commands it uses: `tools` or `flink`."""
    image: str
    """Target in docker/Dockerfile."""
    needs: tuple[str, ...] = ()
    """Services that must answer before this one starts."""
    port: str | None = None
    """Setting of the port on which it answers; None: it is ready while it runs."""
    page: tuple[str, str] | None = None
    """Name of its web page, and the setting of the page's port."""
    flags: str | None = None
    """Module that takes the further flags of a start, and checks them with --check-flags."""
    grace_seconds: float = 30
    """How long it may take to end after SIGTERM."""
    one_shot: bool = False
    """A one-shot service: it does its work and ends."""
    may_finish: bool = False
    """It may end by itself when its work is done."""


TABLE = (
    Service("kafka", "tools", "kafka", port="KAFKA_PORT"),
    # Flink's cluster needs no broker to start.
    Service("jobmanager", "flink", "flink", port="FLINK_UI_PORT", page=("Flink UI", "FLINK_UI_PORT")),
    Service("taskmanager", "flink", "flink"),
    Service("topics", "tools", "generator", needs=("kafka",), one_shot=True),
    Service("generator", "tools", "generator", needs=("kafka",), flags="generator", may_finish=True),
    Service(
        "spark", "tools", "spark", needs=("kafka",), flags="spark_job.visits_json_synchronizer",
        page=("Spark UI", "SPARK_UI_PORT"),
        # It ends after the running batch, and the first batch of a long replay takes long.
        grace_seconds=120,
    ),
    Service("submit", "flink", "flink", needs=("kafka", "jobmanager"), one_shot=True),
)  # fmt: skip

SERVICES = tuple(row for row in TABLE if not row.one_shot)
"""Services that keep running."""
LOCAL_PORTS = (
    "KAFKA_PORT", "KAFKA_CONTAINER_PORT", "KAFKA_CONTROLLER_PORT", "FLINK_UI_PORT", "FLINK_RPC_PORT", "SPARK_UI_PORT",
)  # fmt: skip
"""Ports that listen on the host with the local backend."""
PUBLISHED_PORTS = ("KAFKA_PORT", "FLINK_UI_PORT", "SPARK_UI_PORT")
"""Ports that containers publish."""


def service(name: str) -> Service:
    """Find a service by its name. Raises StackError that lists the names."""
    for row in SERVICES:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in SERVICES)
    raise StackError(f"there is no service '{name}'; the services are: {known}")
