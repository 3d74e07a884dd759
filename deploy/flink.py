"""The windowing job's manifest for the Flink Kubernetes operator."""

from __future__ import annotations

import re

from deploy import pod
from deploy.manifest import Manifest, Object, Unchecked, apart, object_name
from deploy.settings import data
from faultline.formats.jobs import MAIN, PROGRAMS
from faultline.locks import locked_packages
from faultline.settings import ROOT, Settings
from faultline.storage.engines import flink_s3_options
from flink_job.configuration import TEMPLATES, cluster_values, render
from flink_job.guarantees import job_configuration

_FLINK = "/opt/flink"
"""Flink's folder in the image, where Flink's own Kubernetes code looks for it."""
_PLAIN_OPTION = re.compile(r"^([a-z][\w.-]+): ([^@\n]+)$", re.MULTILINE)
_BY_FIELD = ("parallelism.default",)
"""Options of the job that have a field of their own in the manifest."""


def _version() -> str:
    return locked_packages("flink")["apache-flink"]


def cluster_options(settings: Settings) -> dict[str, str]:
    """The local cluster's config.yaml without its addresses, folders and JVM flags: memory, slots, heartbeats."""
    template = (TEMPLATES / "config.yaml").read_text(encoding="utf-8")
    rendered = render(template, cluster_values(settings))
    return {name: value.strip("'") for name, value in _PLAIN_OPTION.findall(rendered)}


def high_availability(settings: Settings) -> dict[str, str]:
    """Options of the JobManagers: Kubernetes elects the leader, the object store keeps what the next one needs."""
    timeout = f"{settings.number('FLINK_LEADER_TIMEOUT_MS')} ms"
    return {
        "high-availability.type": "kubernetes",
        "high-availability.storageDir": data(
            settings, "checkpoints", settings.text("FLINK_CHECKPOINTS"), "high-availability"
        ),
        "high-availability.kubernetes.leader-election.lease-duration": timeout,
        "high-availability.kubernetes.leader-election.renew-deadline": timeout,
        "high-availability.kubernetes.leader-election.retry-period": (
            f"{settings.number('FLINK_LEADER_TIMEOUT_MS') // 3} ms"
        ),
    }


def options(settings: Settings) -> dict[str, str]:
    """`flinkConfiguration`: the guarantees of the local job, at places that every pod reaches."""
    job = job_configuration(settings, settings.text("FLINK_MODE"))
    checkpoints = ("checkpoints", settings.text("FLINK_CHECKPOINTS"))
    return {
        **{name: value for name, value in job.items() if name not in _BY_FIELD},
        "execution.checkpointing.dir": data(settings, *checkpoints),
        # Where an upgrade with `upgradeMode: savepoint` leaves them.
        "execution.checkpointing.savepoint-dir": data(settings, *checkpoints, "savepoints"),
        **cluster_options(settings),
        **high_availability(settings),
        **flink_s3_options(settings.text("STORE_ENDPOINT")),
    }


def _pod_template(settings: Settings) -> Object:
    container = {
        # The name by which Flink finds its own container.
        "name": "flink-main-container",
        "env": pod.environment(settings, "FLINK"),
        "volumeMounts": pod.mounts(),
    }
    return {
        "spec": {"securityContext": pod.user(), "containers": [container], "volumes": pod.volumes(settings)},
    }


def _job(settings: Settings) -> Object:
    program = PROGRAMS[MAIN].relative_to(ROOT)
    return {
        "jarURI": f"local://{_FLINK}/opt/flink-python-{_version()}.jar",
        "entryClass": "org.apache.flink.client.python.PythonDriver",
        "args": [
            "-pyclientexec",
            f"{pod.ARTIFACTS}/venv-flink/bin/python",
            "-py",
            f"{pod.CODE}/{program}",
        ],
        "parallelism": settings.number("FLINK_PARALLELISM"),
        "state": "running",
        # Each change of this object continues from the newest checkpoint, and from nothing else.
        "upgradeMode": "last-state",
        # State that the job no longer has fails the restore.
        "allowNonRestoredState": False,
    }


def _deployment(settings: Settings) -> Object:
    name = object_name(settings.text("FLINK_JOB_NAME"))
    slots = int(cluster_options(settings)["taskmanager.numberOfTaskSlots"])
    version = "_".join(_version().split(".")[:2])
    return {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": settings.text("NAMESPACE")},
        "spec": {
            "image": pod.image(settings, "flink"),
            "flinkVersion": f"v{version}",
            "mode": "native",
            "serviceAccount": settings.text("FLINK_SERVICE_ACCOUNT"),
            "flinkConfiguration": options(settings),
            "podTemplate": _pod_template(settings),
            "jobManager": {
                "replicas": settings.number("FLINK_JOBMANAGERS"),
                # Memory is in flinkConfiguration, part by part.
                "resource": {"cpu": 1},
                "podTemplate": {"spec": {"affinity": apart({"app": name, "component": "jobmanager"})}},
            },
            # A core for each slot.
            "taskManager": {"resource": {"cpu": slots}},
            "job": _job(settings),
        },
    }


def manifest(settings: Settings) -> Manifest:
    """deploy/flink.yaml."""
    return Manifest(
        file="flink.yaml",
        operator="the Flink Kubernetes operator",
        checked="the definition of FlinkDeployment in the operator's published jar (1.10.0)",
        unchecked=(
            Unchecked("spec.flinkVersion", "the published definition ends at v1_20; the operator must be newer"),
            Unchecked(
                "spec.flinkConfiguration",
                "the definition takes any name; the tests look up each one in Flink's own classes, except s3.*, which "
                "belong to a plugin",
            ),
        ),
        objects=(_deployment(settings),),
    )
