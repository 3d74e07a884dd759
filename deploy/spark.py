"""The synchronizer's manifest for Kubeflow's Spark operator."""

from __future__ import annotations

from pathlib import Path

from deploy import pod
from deploy.manifest import Manifest, Object, Unchecked, object_name
from faultline.locks import locked_packages
from faultline.settings import Settings, artifacts, guard_jar, store_jars
from faultline.storage.engines import s3a_options
from spark_job.options import alone
from spark_job.session import SILENT_EXECUTOR, UTC, configuration

_OF_ONE_MACHINE = frozenset(
    {
        "spark.driver.extraJavaOptions",
        "spark.driver.extraClassPath",
        "spark.driver.bindAddress",
        "spark.driver.host",
        "spark.jars",
        "spark.jars.ivy",
        "spark.local.dir",
        "spark.sql.warehouse.dir",
    }
)
"""Addresses, folders and flags of the machine on which a driver runs."""
_BY_FIELD = frozenset({"spark.app.name", "spark.master", "spark.driver.memory"})
"""Settings that have a field of their own in the manifest, or that the operator sets."""


def spark_options(settings: Settings) -> dict[str, str]:
    """`sparkConf`: the local session's settings, and the class path of the images."""
    scratch = Path("/scratch")
    local = configuration(alone(settings, settings.query(), scratch), settings, scratch)
    shared = {name: value for name, value in local.items() if name not in _OF_ONE_MACHINE | _BY_FIELD}
    # Driver and executors have the same image: jars are read in place and never copied.
    # The pod's JVM runs before the program does, so the file system of the store is on its class path from the start.
    folders = (artifacts() / "jars" / "spark", store_jars("spark"))
    jars = ":".join(f"{pod.ARTIFACTS}/{folder.relative_to(artifacts())}/*" for folder in folders)
    guard = Path(pod.ARTIFACTS) / guard_jar("spark").relative_to(artifacts())
    return {
        **shared,
        **SILENT_EXECUTOR,
        "spark.driver.extraClassPath": f"{guard}:{jars}",
        "spark.executor.extraClassPath": jars,
    }


def _application(settings: Settings) -> Object:
    common = {
        "env": pod.environment(settings, "SPARK"),
        "javaOptions": UTC,
        "podSecurityContext": pod.user(),
        "volumeMounts": pod.mounts(),
    }
    program = "spark_job/visits_json_synchronizer.py"
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": object_name(settings.query()), "namespace": settings.text("NAMESPACE")},
        "spec": {
            "type": "Python",
            "mode": "cluster",
            "image": pod.image(settings, "spark"),
            "sparkVersion": locked_packages("tools")["pyspark"],
            "mainApplicationFile": f"local://{pod.CODE}/{program}",
            # A driver that is gone comes back, and runs the batch again that it had planned.
            "restartPolicy": {"type": "Always", "onFailureRetryInterval": 10, "onSubmissionFailureRetryInterval": 10},
            "sparkConf": spark_options(settings),
            "hadoopConf": s3a_options(settings.text("STORE_ENDPOINT"), settings.text("STORE_REGION")),
            "volumes": pod.volumes(settings),
            "driver": {
                "cores": 1,
                "memory": settings.text("SPARK_DRIVER_MEMORY"),
                "serviceAccount": settings.text("SPARK_SERVICE_ACCOUNT"),
                **common,
            },
            "executor": {
                "instances": settings.number("SPARK_EXECUTORS"),
                "cores": settings.number("SPARK_EXECUTOR_CORES"),
                "memory": settings.text("SPARK_EXECUTOR_MEMORY"),
                **common,
            },
        },
    }


def manifest(settings: Settings) -> Manifest:
    """deploy/spark.yaml."""
    return Manifest(
        file="spark.yaml",
        operator="Kubeflow's Spark operator",
        checked="the models of SparkApplication that the operator's project publishes (kubeflow-spark-api)",
        unchecked=(
            Unchecked(
                "spec.sparkConf, spec.hadoopConf",
                "the models take any name; the tests look up each one of sparkConf in Spark's own classes",
            ),
        ),
        objects=(_application(settings),),
    )
