"""The table of services, in the order in which they start.

A new service is a row here, `faultline/services/<name>.sh`, and an entry in docker-compose.yaml, which a test compares
with the row. A service that a stack may have several times has a row for each copy; a setting in COUNTS says how many
of them are part of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from faultline.copies import name_of, setting_of
from faultline.settings import ROCKSDB, own_store
from faultline.stack.errors import StackError

COUNTS = {
    "KAFKA_BROKERS": (1, 3),
    "FLINK_JOBMANAGERS": (1, 2),
    "FLINK_TASKMANAGERS": (1, 2, 3, 4),
    "SPARK_WORKERS": (0, 1, 2, 3),
    "METRICS": (0, 1),
}
"""Settings that say how many of a service there are, and the numbers that they take; the first is the usual one."""
WATCHING = ("METRICS",)
"""Those of COUNTS whose services only watch the others."""
STORE_PROFILE = "DATA"
"""The profile in docker-compose.yaml of services that a stack with an object store has; the others follow COUNTS."""


@dataclass(frozen=True)
class Service:
    """One row. `faultline/services/<program>.sh` runs it, on a host and in a container."""

    name: str
    environment: str
    """The environment whose Python and commands it uses: `tools`, `flink`, `page` or `store`."""
    image: str
    """Target in docker/Dockerfile."""
    needs: tuple[str, ...] = ()
    """Services that must answer before this one starts, if the stack has them; a start by itself takes any copy."""
    port: str | None = None
    """Setting of the port on which it answers; None: it is ready while it runs."""
    health: str = ""
    """Path on that port where it says by HTTP that it is well; empty: an open port says so."""
    check: tuple[str, ...] = ()
    """Words of docker/health.sh, by which its container is healthy; empty: by `port`, or `published`, and `health`."""
    listens: tuple[str, ...] = ()
    """Settings of all ports on which it listens with the local backend."""
    published: str | None = None
    """Setting of the port that its container publishes."""
    page: str | None = None
    """Name of its web page, which is on the published port."""
    flags: str | None = None
    """Module that takes the further flags of a start, and checks them with --check-flags."""
    grace_seconds: float = 30
    """Seconds that the service may take to end after SIGTERM."""
    mebibytes: int = 0
    """Its resident memory is below this, and the heap of `heap`; scripts/status.sh shows it."""
    mebibytes_of_several: int = 0
    """The same for each of several copies, if that is another number."""
    heap: str = ""
    """Setting of a heap whose size comes on top."""
    rocksdb: str = ""
    """Setting of the memory that comes on top when RocksDB keeps the state of the Flink job."""
    one_shot: bool = False
    """A one-shot service: it does its work and ends."""
    may_finish: bool = False
    """It may end by itself when its work is done."""
    copy_of: str = ""
    """The service whose program it runs once more."""
    count: str = ""
    """A setting in COUNTS: this service is part of the stack when that is at least `copy`."""
    copy: int = 1
    of_store: bool = False
    """It is part of a stack that has an object store of its own."""

    @property
    def family(self) -> str:
        """The service of which this is a copy, or itself."""
        return self.copy_of or self.name

    @property
    def command(self) -> list[str]:
        """Its script, from the project's folder; a copy is called with its own name."""
        return [f"faultline/services/{self.family}.sh", *([self.name] if self.copy_of else [])]

    @property
    def container_check(self) -> tuple[str, ...]:
        """Words of docker/health.sh, by which its container is healthy; none for a one-shot service."""
        if self.health:
            return ("says", self.health, "^HTTP/1[.]. 200 ", f"127.0.0.1:{self.port}")
        port = self.port or self.published
        return self.check or (("listens", port) if port else ())

    @property
    def profiles(self) -> list[str]:
        """Its profiles in docker-compose.yaml, one for each number of COUNTS that adds it; none: it is always there."""
        if self.of_store:
            return [STORE_PROFILE]
        numbers = COUNTS[self.count] if self.count else ()
        added = [number for number in numbers if number >= self.copy]
        return [] if len(added) == len(numbers) else [_profile(self.count, number) for number in added]

    def is_part(self, settings: Mapping[str, str]) -> bool:
        """Return whether a stack with these settings has it."""
        if self.of_store:
            return own_store(settings)
        return not self.count or int(settings[self.count]) >= self.copy


def _profile(name: str, number: int | str) -> str:
    """The profile of a number; that of a part which a stack has or has not is for people to type."""
    return name.lower() if COUNTS[name] == (0, 1) and str(number) == "1" else f"{name}-{number}"


def _brokers() -> tuple[Service, ...]:
    rows = _copies(Service("kafka", "tools", "kafka", count="KAFKA_BROKERS", mebibytes=448, mebibytes_of_several=384))
    rows = tuple(_on_ports(row, "KAFKA", "PORT", "CONTAINER_PORT", "CONTROLLER_PORT") for row in rows)
    # A broker opens its listeners last, once it serves requests.
    return tuple(replace(row, check=("listens", row.listens[1])) for row in rows)


def _taskmanagers() -> tuple[Service, ...]:
    first = Service(
        "taskmanager", "flink", "flink", needs=("store",), count="FLINK_TASKMANAGERS", mebibytes=384,
        heap="FLINK_TASK_HEAP", rocksdb="FLINK_ROCKSDB_MEMORY",
        # Healthy means that a JobManager counts it, not only that the process runs.
        check=_overview('"taskmanagers":[1-9]', "jobmanager:FLINK_UI_PORT", "jobmanager-2:FLINK_STANDBY_UI_PORT"),
    )  # fmt: skip
    return _copies(first)


def _spark_workers() -> tuple[Service, ...]:
    first = Service(
        "spark-worker", "tools", "spark", needs=("store", "spark-master"), count="SPARK_WORKERS", mebibytes=320,
        heap="SPARK_EXECUTOR_MEMORY",
    )  # fmt: skip
    return tuple(_on_ports(row, "SPARK_WORKER", "UI_PORT") for row in _copies(first))


def _overview(pattern: str, *addresses: str) -> tuple[str, ...]:
    return ("says", "/overview", pattern, *addresses)


def _on_ports(row: Service, prefix: str, *settings: str) -> Service:
    """A row with the ports of its copy; the first one is that on which it answers, and is published."""
    ports = tuple(setting_of(prefix, each, row.copy) for each in settings)
    return replace(row, port=ports[0], published=ports[0], listens=ports)


def _copies(first: Service) -> tuple[Service, ...]:
    """The rows of a service, as many as its setting allows."""
    others = range(2, COUNTS[first.count][-1] + 1)
    return (
        first, *(replace(first, name=name_of(first.name, copy), copy_of=first.name, copy=copy) for copy in others)
    )  # fmt: skip


_BROKERS = _brokers()
TABLE = (
    *_BROKERS,
    Service(
        "zookeeper", "flink", "flink", port="ZOOKEEPER_PORT", listens=("ZOOKEEPER_PORT",),
        count="FLINK_JOBMANAGERS", copy=2, mebibytes=128,
    ),
    Service(
        "store", "store", "store", port="STORE_PORT", health="/healthz", published="STORE_PORT",
        listens=tuple(
            f"STORE_{server}{port}" for server in ("", "FILER_", "VOLUME_", "MASTER_") for port in ("PORT", "GRPC_PORT")
        ),
        of_store=True, mebibytes=256,
    ),
    Service("bucket", "tools", "spark", needs=("store",), one_shot=True, of_store=True),
    # Flink's cluster needs no broker to start.
    Service(
        "jobmanager", "flink", "flink", port="FLINK_UI_PORT", published="FLINK_UI_PORT", page="Flink UI",
        listens=("FLINK_UI_PORT", "FLINK_RPC_PORT"), needs=("store",), mebibytes=448,
        check=_overview('"taskmanagers"', "127.0.0.1:FLINK_UI_PORT"),
    ),
    Service(
        "jobmanager-2", "flink", "flink", port="FLINK_STANDBY_UI_PORT", published="FLINK_STANDBY_UI_PORT",
        page="second Flink UI", listens=("FLINK_STANDBY_UI_PORT",), copy_of="jobmanager",
        needs=("store",), count="FLINK_JOBMANAGERS", copy=2, mebibytes=448,
        check=_overview('"taskmanagers"', "127.0.0.1:FLINK_STANDBY_UI_PORT"),
    ),
    *_taskmanagers(),
    Service(
        "spark-master", "tools", "spark", port="SPARK_MASTER_UI_PORT", published="SPARK_MASTER_UI_PORT",
        page="Spark master", listens=("SPARK_MASTER_PORT", "SPARK_MASTER_UI_PORT"), count="SPARK_WORKERS",
        mebibytes=96, heap="SPARK_DAEMON_MEMORY",
        check=("says", "/json/", '"status" *: *"ALIVE"', "127.0.0.1:SPARK_MASTER_UI_PORT"),
    ),
    *_spark_workers(),
    Service("topics", "tools", "generator", needs=("kafka",), one_shot=True),
    Service(
        "generator", "tools", "generator", needs=("kafka",), flags="generator", may_finish=True, mebibytes=64,
        check=("connected", *(row.listens[1] for row in _BROKERS)),
    ),
    Service(
        "spark", "tools", "spark", needs=("kafka", "store", "spark-master"), flags="spark_job.visits_json_synchronizer",
        published="SPARK_UI_PORT", page="Spark UI", listens=("SPARK_UI_PORT",), mebibytes=192,
        heap="SPARK_DRIVER_MEMORY",
        # It ends after the running batch, and the first batch of a long replay takes long.
        grace_seconds=120,
    ),
    # It reads, and only while somebody looks.
    Service(
        "page", "page", "flink", port="PAGE_PORT", published="PAGE_PORT", page="live page", listens=("PAGE_PORT",),
        grace_seconds=10, mebibytes=256,
    ),
    Service(
        "exporter", "page", "flink", port="METRICS_PORT", listens=("METRICS_PORT",), count="METRICS", grace_seconds=10,
        mebibytes=64,
    ),
    Service(
        "prometheus", "tools", "prometheus", port="PROMETHEUS_PORT", health="/-/ready", published="PROMETHEUS_PORT",
        page="Prometheus", listens=("PROMETHEUS_PORT",), count="METRICS", grace_seconds=10, mebibytes=128,
    ),
    Service("submit", "flink", "flink", needs=("kafka", "store", "jobmanager"), one_shot=True),
)  # fmt: skip

LOCAL_PORTS = tuple(port for row in TABLE for port in row.listens)
"""Ports that listen on the host with the local backend."""
_CLEAN = "start clean with it: scripts/down.sh --wipe, then"
_BESIDE_MEBIBYTES = 320
"""For what runs beside the services, one at a time: a client that submits the job, a verdict."""


def table(settings: Mapping[str, str]) -> tuple[Service, ...]:
    """The rows that are part of a stack with these settings."""
    return tuple(row for row in TABLE if row.is_part(settings))


def services(settings: Mapping[str, str]) -> tuple[Service, ...]:
    """The services of a stack that keep running."""
    return tuple(row for row in table(settings) if not row.one_shot)


def mebibytes(settings: Mapping[str, str]) -> int:
    """The memory that a stack needs: that of its services, and of what runs beside them. Raises StackError."""
    return _BESIDE_MEBIBYTES + sum(mebibytes_of(row, settings) for row in services(settings))


def mebibytes_of(row: Service, settings: Mapping[str, str]) -> int:
    """The memory that one service needs. Raises StackError when the setting of a size is not one."""
    several = row.mebibytes_of_several and len(copies(row.family, settings)) > 1
    own = row.mebibytes_of_several if several else row.mebibytes
    on_rocksdb = row.rocksdb if settings["FLINK_STATE_BACKEND"] == ROCKSDB else ""
    return own + sum(_size(name, settings[name]) for name in (row.heap, on_rocksdb) if name)


def _size(name: str, value: str) -> int:
    found = re.fullmatch(r"([1-9]\d*)([kKmMgGtT])", value)
    if found is None:
        raise StackError(f"{name}={value} is not a size like 512m or 1g (STACK_{name}, or .env)")
    return (int(found[1]) << 10 * "kmgt".index(found[2].lower())) >> 10


def profiles(settings: Mapping[str, str]) -> set[str]:
    """The profiles in docker-compose.yaml of a stack with these settings."""
    counted = {_profile(name, settings[name]) for name in COUNTS}
    return counted | ({STORE_PROFILE} if own_store(settings) else set())


def copies(family: str, settings: Mapping[str, str]) -> tuple[Service, ...]:
    """A service of a stack and its copies, the first one first."""
    return tuple(row for row in table(settings) if row.family == family)


def require_counts(settings: Mapping[str, str]) -> None:
    """Raise StackError when a setting asks for a number of services that no stack has."""
    for name, numbers in COUNTS.items():
        if settings.get(name, "") not in map(str, numbers):
            *others, last = map(str, numbers)
            raise StackError(
                f"{name}={settings.get(name, '')}: choose {', '.join(others)} or {last} (STACK_{name}, or .env)"
            )


def service(name: str, settings: Mapping[str, str]) -> Service:
    """Find a service of a stack by its name. Raises StackError that lists the names."""
    known = services(settings)
    for row in known:
        if row.name == name:
            return row
    other = next((row for row in TABLE if row.name == name and (row.count or row.of_store)), None)
    if other is not None and other.of_store:
        raise StackError(f"{name} is not part of this stack; {_CLEAN} STACK_DATA=s3://faultline scripts/up.sh")
    if other is not None:
        least = next(number for number in COUNTS[other.count] if number >= other.copy)
        how = f"STACK_{other.count}={least} scripts/up.sh"
        # Topics stay with the number of brokers.
        step = f"{_CLEAN} {how}" if other.family == "kafka" else f"{how} adds it"
        raise StackError(f"{name} is not part of this stack; {step}")
    raise StackError(f"there is no service '{name}'; the services are: {', '.join(row.name for row in known)}")
