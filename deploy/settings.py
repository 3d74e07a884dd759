"""The settings of the cluster: `.env`, then `deploy/kubernetes.env`. Variables of the shell do not count."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from faultline.settings import Settings, SettingsError, read_env_file

HERE = Path(__file__).parent
FILE = HERE / "kubernetes.env"
KAFKA_CLUSTER = "faultline"
"""Name of the Kafka cluster; Strimzi derives the names of its Services from it."""
ENGINES = ("FLINK", "SPARK")
"""Beginnings of the names of settings that belong to one engine."""
_ADDED = ("DATA", "STORE_ENDPOINT")
"""Settings that the programs read and that are in kubernetes.env only."""
_NUMBERS = (
    "KAFKA_MIN_INSYNC", "KAFKA_REPLICATION", "KAFKA_BROKERS", "TOPIC_PARTITIONS", "FLINK_PARALLELISM",
    "FLINK_MAX_PARALLELISM", "FLINK_JOBMANAGERS", "FLINK_LEADER_TIMEOUT_MS", "SPARK_EXECUTORS", "SPARK_EXECUTOR_CORES",
)  # fmt: skip


def cluster_settings(file: Path = FILE) -> Settings:
    """The settings by which the manifests are written. Raises SettingsError when they do not fit each other."""
    own = read_env_file(file)
    settings = Settings(environ={}).changed(own)
    for name, why in _misfits(settings):
        where = "deploy/kubernetes.env" if name in own else ".env"
        raise SettingsError(f"{name}={settings.text(name)} {why}; correct it in {where}")
    return settings


def _misfits(settings: Settings) -> Iterator[tuple[str, str]]:
    """Names of settings that cannot be as they are, and why; after the first one the rest may not be computable."""
    for name in _NUMBERS:
        text = settings.text(name)
        if not (text.isascii() and text.isdecimal() and int(text) > 0):
            yield name, "is not a whole number above 0"
    brokers, replicas = settings.number("KAFKA_BROKERS"), settings.number("KAFKA_REPLICATION")
    if replicas > brokers:
        yield "KAFKA_REPLICATION", f"needs as many brokers, and KAFKA_BROKERS={brokers}"
    if settings.number("KAFKA_MIN_INSYNC") > replicas:
        yield "KAFKA_MIN_INSYNC", f"is more than KAFKA_REPLICATION={replicas}: nothing would ever be acknowledged"
    if (tasks := settings.number("FLINK_PARALLELISM")) > (most := settings.number("FLINK_MAX_PARALLELISM")):
        yield "FLINK_PARALLELISM", f"is more than FLINK_MAX_PARALLELISM={most}: raise that one before the first start"
    if settings.number("TOPIC_PARTITIONS") % tasks:
        why = f"is no multiple of FLINK_PARALLELISM={tasks}: some tasks would read more than others, or nothing"
        yield "TOPIC_PARTITIONS", why


def data(settings: Settings, *folders: str, scheme: str = "s3") -> str:
    """URI of a folder of the engines' data. Flink says `s3://`, Spark says `s3a://`."""
    bucket = settings.text("DATA").removeprefix("s3://").rstrip("/")
    return "/".join([f"{scheme}://{bucket}", *folders])


def bootstrap(settings: Settings) -> str:
    """Address of the brokers inside the cluster: the Service that Strimzi makes."""
    return f"{KAFKA_CLUSTER}-kafka-bootstrap:{settings.text('KAFKA_PORT')}"


def of_pods(settings: Settings, engine: str) -> dict[str, str]:
    """The settings with which the programs in pods of an engine differ from the `.env` in their image."""
    local = Settings(environ={}).values
    others = tuple(f"{other}_" for other in ENGINES if other != engine)
    differ = {
        name: value
        for name, value in settings.values.items()
        if value != local.get(name, value) and not name.startswith(others)
    }
    # A page in a pod is reached from outside of it.
    listening = {"SPARK_BIND_HOST": "0.0.0.0"} if engine == "SPARK" else {}
    added = {name: settings.text(name) for name in _ADDED}
    return {**differ, **added, **listening, "KAFKA_BOOTSTRAP": bootstrap(settings)}
