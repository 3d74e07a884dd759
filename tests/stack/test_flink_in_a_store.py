"""The windowing job with its checkpoints in an object store: a kill, a restore, a store that is away, no key shown."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.settings import store_jars
from flink_job.rest import call, checkpoints
from tests.stack.broker import Broker
from tests.stack.flink_accounts import account
from tests.stack.flink_cluster import (
    BOUND_SECONDS,
    WINDOW_SECONDS,
    Cluster,
    newest_checkpoint,
    producing,
    running_cluster,
)
from tests.stack.secret import has_secret, require_in_no_process
from tests.stack.store import BUCKET, Store, run_store

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.full,
    pytest.mark.skipif(not any(store_jars("flink").glob("*.jar")), reason=f"{store_jars('flink')} is not fetched"),
]

AWAY_SECONDS = 20
"""More than three checkpoints, fewer than the job tolerates."""


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """A store that the test may stop."""
    folder = tmp_path / "store"
    folder.mkdir()
    yield from run_store(folder)


@pytest.fixture
def in_store(broker: Broker, own_store: Store, tmp_path: Path) -> Iterator[Cluster]:
    """A running cluster whose data is in the store."""
    home = tmp_path / "home"
    home.mkdir()
    with running_cluster(broker, home, STACK_DATA=f"s3://{BUCKET}/of-a-job", **own_store.environment) as running:
        yield running


def test_nothing_is_lost_or_twice_with_checkpoints_in_a_store(in_store: Cluster, own_store: Store) -> None:
    with producing(in_store) as wait:
        job = in_store.submit()
        in_store.wait_for_checkpoints(job, 3)
        in_store.kill("taskmanager")
        in_store.start("taskmanager")
        in_store.wait("a restart", lambda: checkpoints(in_store.rest, job)["latest"]["restored"])
        in_store.wait_for_checkpoints(job, 2)
        assert in_store.module("flink_job.cancel").returncode == 0
        newest = newest_checkpoint(in_store, job)
        assert newest.startswith(f"s3://{BUCKET}/of-a-job/checkpoints/flink/{job}/chk-")
        assert in_store.module("faultline.inspector.flink", "resolve", "latest").stdout.strip() == newest
        offsets = in_store.module("faultline.inspector.flink", "offsets", newest)
        assert sum(json.loads(offsets.stdout).values()) > 0, offsets.stderr
        described = in_store.module("faultline.inspector.flink", "describe", newest)
        report = json.loads(described.stdout)
        assert report["problems"] == [], described.stderr
        assert any(state["windows"] for each in report["operators"] for state in each["state"])
        job = in_store.submit("--from", newest)
        wait(4)
    in_store.drain(job)
    result = account(in_store.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, in_store.topics)
    assert result.wrong == []
    assert min(result.in_windows, result.late, result.rejected, result.pending) > 0
    notes = Path(in_store.environment["STACK_HOME"]) / "checkpoints" / "flink"
    assert sorted(str(path.relative_to(notes)) for path in notes.rglob("*") if path.is_file()) == sorted(
        f"{each.name}/job.json" for each in notes.iterdir()
    )
    require_no_secret(in_store, own_store)


def require_no_secret(cluster: Cluster, store: Store) -> None:
    """Neither the job's data, nor logs and settings, nor a command line or a variable of a process has the key."""
    folders = (store.folder / "data", Path(cluster.environment["STACK_HOME"]))
    files = [store.folder / "output", *(file for folder in folders for file in folder.rglob("*") if file.is_file())]
    assert len(files) > len(folders)
    assert [str(file) for file in files if has_secret(file, store.secret)] == []
    require_in_no_process(store.secret)


def test_a_store_that_is_away_for_a_while_costs_checkpoints_and_no_window(in_store: Cluster, own_store: Store) -> None:
    with producing(in_store):
        job = in_store.submit()
        in_store.wait_for_checkpoints(job, 3)
        completed = checkpoints(in_store.rest, job)["counts"]["completed"]
        own_store.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(AWAY_SECONDS)
            # The one that was being written may have been complete already.
            assert checkpoints(in_store.rest, job)["counts"]["completed"] <= completed + 1
        finally:
            own_store.process.send_signal(signal.SIGCONT)
        in_store.wait_for_checkpoints(job, 2)
    in_store.drain(job)
    assert account(in_store.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, in_store.topics).wrong == []


def test_a_job_does_not_start_without_its_store(in_store: Cluster, own_store: Store) -> None:
    own_store.stop()
    refused = in_store.module("flink_job.submit")
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert f"the object store at {own_store.endpoint} does not answer" in line
    assert call(in_store.rest, "/jobs")["jobs"] == []
