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
_REPLICATED = ("KAFKA_MIN_INSYNC", "KAFKA_REPLICATION", "KAFKA_BROKERS")
"""None of them may be above the next one."""
_NUMBERS = (*_REPLICATED, "TOPIC_PARTITIONS", "FLINK_PARALLELISM", "FLINK_JOBMANAGERS", "FLINK_LEADER_TIMEOUT_MS",
            "SPARK_EXECUTORS", "SPARK_EXECUTOR_CORES")  # fmt: skip


def cluster_settings(file: Path = FILE) -> Settings:
    """The settings by which the manifests are written. Raises SettingsError when they do not fit each other."""
    settings = Settings(environ={}).changed(read_env_file(file))
    for name in _NUMBERS:
        _require(_is_number(settings.text(name)), settings, name, "is not a whole number above 0", file)
    least, replicas, brokers = (settings.number(name) for name in _REPLICATED)
    _require(replicas <= brokers, settings, _REPLICATED[1], f"needs as many brokers, and KAFKA_BROKERS={brokers}", file)
    _require(
        least <= replicas, settings, _REPLICATED[0],
        f"is more than KAFKA_REPLICATION={replicas}: nothing would ever be acknowledged", file,
    )  # fmt: skip
    tasks = settings.number("FLINK_PARALLELISM")
    _require(
        settings.number("TOPIC_PARTITIONS") % tasks == 0, settings, "TOPIC_PARTITIONS",
        f"is no multiple of FLINK_PARALLELISM={tasks}: some tasks would read more than others, or nothing", file,
    )  # fmt: skip
    return settings


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text) > 0


def _require(met: bool, settings: Settings, name: str, why: str, file: Path) -> None:
    if not met:
        # The last file that has it wins.
        where = "deploy/kubernetes.env" if name in read_env_file(file) else ".env"
        raise SettingsError(f"{name}={settings.text(name)} {why}; correct it in {where}")


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
