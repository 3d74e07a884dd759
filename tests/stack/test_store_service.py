"""The object store as a service of the stack: its answer, its bucket, its key, a kill, and what is left of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyarrow.fs import S3FileSystem

from benchmarks.own_stack import OwnStack, claimed
from faultline.settings import ROOT
from faultline.stack.backend import EXITED, PAUSED, RUNNING
from faultline.stack.processes import of_stack
from faultline.stack.services import service
from faultline.storage.data import data_store, spark_checkpoints
from faultline.storage.objects import make_bucket
from faultline.waiting import wait_until
from tests.stack.secret import has_secret, require_in_no_process

pytestmark = [
    pytest.mark.ci,
    pytest.mark.timeout(300),
    # A service outlives whoever started it.
    pytest.mark.filterwarnings(r"ignore:subprocess \d+ is still running:ResourceWarning"),
]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[OwnStack]:
    """A stack with its data in a store, of which only the store runs."""
    running = claimed(tmp_path / "home", {"DATA": "s3://faultline/below", "STORE_VOLUME_MB": "64"})
    try:
        running.start("store")
        yield running
    finally:
        running.backend.down(wipe=True)


def bucket(stack: OwnStack, wait_seconds: int = 30) -> subprocess.CompletedProcess[str]:
    """Run faultline/services/bucket.sh and return its result."""
    command = [str(ROOT / "faultline" / "services" / "bucket.sh"), "--wait-seconds", str(wait_seconds)]
    return subprocess.run(command, env=stack.settings.environment(), capture_output=True, text=True, check=False)


def put(stack: OwnStack, name: str, content: bytes) -> None:
    """Write an object with the client that makes the bucket."""
    store = data_store(stack.settings.typed)
    assert store is not None
    key, secret = store.keys()
    client = S3FileSystem(
        access_key=key, secret_key=secret, region=store.region, scheme="http",
        endpoint_override=store.endpoint.removeprefix("http://"),
    )  # fmt: skip
    with client.open_output_stream(f"faultline/below/{name}") as stream:
        stream.write(content)


def test_a_kill_loses_nothing_and_the_key_is_shown_nowhere(stack: OwnStack) -> None:
    row, backend = service("store", stack.settings.values), stack.backend
    assert backend.answers(row)
    assert 0 < backend.memories()[row.name] < row.mebibytes << 20
    made = bucket(stack)
    assert (made.returncode, made.stderr) == (0, "bucket: faultline is there and takes objects\n")
    assert bucket(stack).returncode == 0, "a second time, at the next start"
    put(stack, "checkpoints/spark/visits_json/commits/0", b"v1\n{}")
    store = data_store(stack.settings.typed)
    assert store is not None
    require_shown_nowhere(stack, store.keys()[1])

    backend.pause(row)
    assert (backend.state(row), backend.answers(row)) == (PAUSED, False)
    backend.resume(row)
    wait_until(lambda: backend.answers(row), "the store to answer", seconds=30)

    backend.kill(row)
    assert (backend.state(row), backend.answers(row)) == (EXITED, False)
    assert "does not answer; scripts/logs.sh store" in bucket(stack, 0).stderr
    stack.start("store")
    assert backend.state(row) == RUNNING
    make_bucket(store, "faultline")
    written = spark_checkpoints(stack.settings.typed) / "visits_json" / "commits" / "0"
    assert written.read_bytes() == b"v1\n{}"
    assert backend.log(row, 5)


def require_shown_nowhere(stack: OwnStack, secret: str) -> None:
    folder = stack.settings.typed.store_folder
    with_it = {file.name for file in stack.home.root.rglob("*") if file.is_file() and has_secret(file, secret)}
    assert with_it == {"credentials", "s3.json"}
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in with_it)
    own = [process.pid for process in of_stack(stack.mark)]
    assert own
    require_in_no_process(secret)


def test_down_ends_it_and_a_wipe_leaves_nothing(stack: OwnStack) -> None:
    assert bucket(stack).returncode == 0
    ports = [int(stack.settings.values[name]) for name in service("store", stack.settings.values).listens]
    removed = stack.backend.down(wipe=True)
    assert stack.home.root / "store" in removed
    assert [path for path in stack.home.root.rglob("*") if path.is_file()] == []
    listening = {
        each.laddr.port for each in psutil.net_connections("inet") if each.laddr and each.status == psutil.CONN_LISTEN
    }
    assert not listening & set(ports)


def test_another_key_and_a_full_store_are_one_line(stack: OwnStack) -> None:
    assert bucket(stack).returncode == 0
    file = stack.settings.typed.store_credentials
    right = file.read_text(encoding="utf-8")
    file.write_text(right.replace("aws_access_key_id = ", "aws_access_key_id = x"), encoding="utf-8")
    [line] = bucket(stack).stderr.splitlines()
    assert line.startswith("bucket: s3://faultline: the object store refuses the key of ")
    file.write_text(right, encoding="utf-8")
    # A bucket takes seven volumes at its first write, and there is room for none.
    stack.stop("store")
    full = stack.changed({"STORE_VOLUMES": "1", "DATA": "s3://another"})
    full.start("store")
    [line] = bucket(full, 0).stderr.splitlines()
    assert line.startswith("bucket: s3://another: the object store at ")
    assert line.endswith("or that it is full (STORE_VOLUMES)")
