"""The settings of the cluster: `.env`, then `deploy/kubernetes.env`. Variables of the shell do not count."""

from __future__ import annotations

from pathlib import Path

from contract.settings import Settings, SettingsError, read_env_file

HERE = Path(__file__).parent
FILE = HERE / "kubernetes.env"
KAFKA_CLUSTER = "faultline"
"""Name of the Kafka cluster; Strimzi derives the names of its Services from it."""
ENGINES = ("FLINK", "SPARK")
"""What the names of settings begin with that belong to one engine."""
_ADDED = ("DATA", "STORE_ENDPOINT")
"""Settings that the programs read and that are in kubernetes.env only."""


def cluster_settings(file: Path = FILE) -> Settings:
    """The settings by which the manifests are written. Raises SettingsError when they do not fit each other."""
    settings = Settings(environ={}).changed(read_env_file(file))
    if settings.number("TOPIC_PARTITIONS") < settings.number("FLINK_PARALLELISM"):
        raise SettingsError(
            f"TOPIC_PARTITIONS={settings.text('TOPIC_PARTITIONS')} is less than "
            f"FLINK_PARALLELISM={settings.text('FLINK_PARALLELISM')}: some tasks would have nothing to read; "
            "raise it in deploy/kubernetes.env"
        )
    return settings


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
