"""Kafka's manifests for Strimzi: the cluster, its brokers, and the topics."""

from __future__ import annotations

from pathlib import Path

from deploy.manifest import Manifest, Object, Unchecked, apart, object_name
from deploy.settings import KAFKA_CLUSTER
from faultline.services.kafka.start import configuration
from faultline.services.kafka.topics import new_topic
from faultline.settings import Settings

API = "kafka.strimzi.io/v1"
"""Releases of Strimzi that have Kafka 4.3 serve this version only."""
_CLUSTER_LABEL = "strimzi.io/cluster"
_POOL = "brokers"
_SET_BY_STRIMZI = (
    "process.roles", "node.id", "controller.", "listener", "advertised.", "inter.broker.", "log.dir",
    "broker.session.timeout", "broker.heartbeat.interval",
)  # fmt: skip
"""Beginnings of broker settings that Strimzi sets by itself and refuses in `config`."""
_COUNTS_OF_ONE_MACHINE = tuple(
    f"{topic}.num.partitions" for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
)
"""Few partitions start fast on one broker. In a cluster Kafka's own 50 spread the coordinators over the brokers."""


def broker_settings(settings: Settings) -> dict[str, str]:
    """The local broker's configuration as it is in a cluster: replicated, without addresses and folders."""
    lines = configuration(settings, 1, Path("/data")).splitlines()
    local = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    properties = {
        name: value
        for name, value in local.items()
        if not name.startswith(_SET_BY_STRIMZI) and name not in _COUNTS_OF_ONE_MACHINE
    }
    for name in properties:
        if name.endswith("replication.factor"):
            properties[name] = settings.text("KAFKA_REPLICATION")
        elif name.endswith(("min.isr", "min.insync.replicas")):
            properties[name] = settings.text("KAFKA_MIN_INSYNC")
    return properties


def _cluster(settings: Settings) -> Object:
    listener = {"name": "plain", "port": settings.number("KAFKA_PORT"), "type": "internal", "tls": False}
    return {
        "apiVersion": API,
        "kind": "Kafka",
        "metadata": {"name": KAFKA_CLUSTER, "namespace": settings.text("NAMESPACE")},
        "spec": {
            "kafka": {"listeners": [listener], "config": broker_settings(settings)},
            "entityOperator": {"topicOperator": {}},
        },
    }


def _brokers(settings: Settings) -> Object:
    """Nodes that are broker and controller, as the local one is; no two on one machine."""
    resources = {"cpu": settings.text("KAFKA_CPU"), "memory": settings.text("KAFKA_MEMORY")}
    volume = {
        "id": 0,
        "type": "persistent-claim",
        "size": settings.text("KAFKA_DISK"),
        # The log outlives a Kafka object that was deleted by mistake.
        "deleteClaim": False,
        "kraftMetadata": "shared",
    }
    return {
        "apiVersion": API,
        "kind": "KafkaNodePool",
        "metadata": {
            "name": _POOL,
            "namespace": settings.text("NAMESPACE"),
            "labels": {_CLUSTER_LABEL: KAFKA_CLUSTER},
        },
        "spec": {
            "replicas": settings.number("KAFKA_BROKERS"),
            "roles": ["controller", "broker"],
            "storage": {"type": "jbod", "volumes": [volume]},
            # Strimzi takes the heap from the memory; the rest is page cache.
            "resources": {"requests": dict(resources), "limits": {"memory": settings.text("KAFKA_MEMORY")}},
            "template": {"pod": {"affinity": apart({_CLUSTER_LABEL: KAFKA_CLUSTER, "strimzi.io/pool-name": _POOL})}},
        },
    }


def _topic(settings: Settings, name: str) -> Object:
    topic = new_topic(name, settings)
    return {
        "apiVersion": API,
        "kind": "KafkaTopic",
        "metadata": {
            "name": object_name(name),
            "namespace": settings.text("NAMESPACE"),
            "labels": {_CLUSTER_LABEL: KAFKA_CLUSTER},
        },
        "spec": {
            "topicName": topic.name,
            "partitions": topic.num_partitions,
            "replicas": settings.number("KAFKA_REPLICATION"),
            "config": dict(topic.topic_configs),
        },
    }


def topics(settings: Settings) -> list[str]:
    """Names of the two pipelines' topics; those of other jobs, which walkthroughs compare, stay on the laptop."""
    return [
        value
        for setting, value in settings.values.items()
        if setting.endswith("_TOPIC") and not setting.startswith(("CLASSIC_", "VISIT_PAGES_"))
    ]


def manifest(settings: Settings) -> Manifest:
    """deploy/kafka.yaml."""
    return Manifest(
        file="kafka.yaml",
        operator="Strimzi",
        checked="the definitions of Kafka, KafkaNodePool and KafkaTopic that Strimzi's own generator writes (0.45.0)",
        unchecked=(
            Unchecked(
                "apiVersion",
                "releases of Strimzi with Kafka 4.3 serve v1 only, whose generator needs a newer Java than the stack; "
                "the objects are compared with v1beta2, of which v1 is the part that was not deprecated",
            ),
            Unchecked(
                "spec.kafka.config, spec.config",
                "the schema takes any name; the tests look up each one in Kafka's own classes, and compare it with the "
                "names that Strimzi refuses",
            ),
        ),
        objects=(_cluster(settings), _brokers(settings), *(_topic(settings, name) for name in topics(settings))),
    )
