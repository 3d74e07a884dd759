"""The job of the manifest, run as Kubernetes runs it: in application mode, with the manifest's words and options."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import pod
from faultline.settings import ROOT
from flink_job.rest import active_job, call
from tests.manifests import written
from tests.stack.broker import Broker
from tests.stack.flink_accounts import account
from tests.stack.flink_cluster import BOUND_SECONDS, PYTHON, WINDOW_SECONDS, Cluster, send

pytestmark = [pytest.mark.full]

OF_THE_CLUSTER = ("s3.", "high-availability.")
"""Options that need Kubernetes or an object store."""


@pytest.fixture
def application(broker: Broker, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose JobManager runs the job's program itself."""
    running = Cluster(broker, tmp_path)
    (deployment,) = written("flink.yaml")
    options, job = deployment["spec"]["flinkConfiguration"], deployment["spec"]["job"]
    places = {
        "execution.checkpointing.dir": (tmp_path / "checkpoints" / "flink").as_uri(),
        "execution.checkpointing.savepoint-dir": (tmp_path / "savepoints").as_uri(),
    }
    kept = {name: value for name, value in options.items() if not name.startswith(OF_THE_CLUSTER)} | places
    exports = running.module("flink_job.configuration", "jobmanager")
    assert exports.returncode == 0, exports.stderr
    home = dict(word.split("=", 1) for word in shlex.split(exports.stdout) if "=" in word)
    # The same words, with this machine's folders for those of the image.
    words = [
        word.replace(f"{pod.ARTIFACTS}/venv-flink/bin/python", str(PYTHON)).replace(f"{pod.CODE}/", f"{ROOT}/")
        for word in job["args"]
    ]
    jar = f"local://{home['FLINK_OPT_DIR']}/{Path(job['jarURI']).name}"
    command = [f"{home['FLINK_HOME']}/bin/standalone-job.sh", "start-foreground", "--job-classname", job["entryClass"]]
    command += ["--jars", jar, *(f"-D{name}={value}" for name, value in kept.items()), *words]
    with running.log.open("ab") as log:
        running.services["jobmanager"] = subprocess.Popen(
            command, env=os.environ | running.environment | home, stdout=log, stderr=log, start_new_session=True
        )
    running.start("taskmanager")
    try:
        yield running
    finally:
        for service in list(running.services):
            running.kill(service)


@pytest.mark.timeout(600)
def test_the_job_of_the_manifest_runs_in_application_mode(application: Cluster) -> None:
    for partition in (0, 1):
        send(application, partition, range(100), visit_id=f"v{partition}")
    name = "visit_windows"
    application.wait("the job", lambda: (active_job(application.rest, name) or {}).get("state") == "RUNNING")
    job = active_job(application.rest, name)
    assert job is not None
    application.drain(job["jid"])
    # The program's guarantees are in force, at the place that the options name.
    config = call(application.rest, f"/jobs/{job['jid']}/checkpoints/config")
    assert config["mode"] == "exactly_once"
    assert config["externalization"] == {"enabled": True, "delete_on_cancellation": False}
    result = account(application.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, application.topics)
    assert result.wrong == []
    assert result.in_windows >= 2 * 80
