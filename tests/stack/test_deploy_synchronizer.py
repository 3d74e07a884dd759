"""The synchronizer of the manifest, run as Kubernetes runs it: by spark-submit, with the manifest's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from deploy import pod
from faultline.formats.visit import output_line
from faultline.settings import ROOT, artifacts
from tests.manifests import written
from tests.stack.broker import Broker
from tests.stack.test_synchronizer import STRANGE, lines_of, send

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

TOPIC = "submitted_synchronizer"
OF_THE_CLUSTER = frozenset({"STACK_DATA", "STACK_STORE_ENDPOINT", "STACK_KAFKA_BOOTSTRAP", "STACK_SPARK_BIND_HOST"})


def on_this_machine(text: str) -> str:
    """Replace the folders of the image by those of this machine."""
    return text.replace(f"{pod.ARTIFACTS}/", f"{artifacts()}/").replace(f"{pod.CODE}/", f"{ROOT}/")


def test_the_synchronizer_of_the_manifest_runs_under_spark_submit(tmp_path: Path, broker: Broker) -> None:
    sent: list[bytes | None] = STRANGE + [f"line {number}".encode() for number in range(200)]
    broker.create_topics(TOPIC)
    send(broker, TOPIC, sent)
    (application,) = written("spark.yaml")
    spec = application["spec"]
    settings = {each["name"]: each["value"] for each in spec["driver"]["env"] if each["name"].startswith("STACK_")}
    environ = os.environ | {name: settings[name] for name in settings.keys() - OF_THE_CLUSTER}
    environ |= {
        "STACK_HOME": str(tmp_path), "STACK_KAFKA_BOOTSTRAP": broker.bootstrap, "STACK_VISITS_TOPIC": TOPIC,
        "STACK_SPARK_BIND_HOST": "127.0.0.1", "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    confs = {name: on_this_machine(value) for name, value in spec["sparkConf"].items()} | {"spark.ui.port": "0"}
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--name", "submitted"]
    command += ["--driver-memory", spec["driver"]["memory"], "--driver-java-options", spec["driver"]["javaOptions"]]
    command += [word for name, value in confs.items() for word in ("--conf", f"{name}={value}")]
    program = on_this_machine(spec["mainApplicationFile"].removeprefix("local://"))
    done = subprocess.run(
        [*command, program, "--trigger", "available-now"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert lines_of("files", tmp_path / "output" / "visits_json") == Counter(output_line(value) for value in sent)
