"""An object store for tests: real SeaweedFS with its data in a temporary folder, on free ports."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import S3FileSystem

from faultline import ports
from faultline.settings import ROOT, STORE_CREDENTIALS
from faultline.stack.own import own_environment
from faultline.stack.services import TABLE
from faultline.storage.objects import CREDENTIALS, REGION, ObjectLocation, ObjectStore, make_bucket
from faultline.waiting import wait_until
from tests.stack.children import tied

_ADDRESS = "127.0.0.1"
_UPLOADS = 8
_HEALTH = next(row.health for row in TABLE if row.name == "store")
BUCKET = "faultline"


@dataclass
class Store:
    """A store with one bucket, and the key of its only user."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    sockets: list[Path]

    @property
    def key(self) -> str:
        return self.place().store.keys()[0]

    @property
    def secret(self) -> str:
        return self.place().store.keys()[1]

    @property
    def endpoint(self) -> str:
        return f"http://{_ADDRESS}:{self.port}"

    @property
    def credentials(self) -> Path:
        return self.folder / STORE_CREDENTIALS

    @property
    def environment(self) -> dict[str, str]:
        """Variables that a program needs to read the store; the key itself is in the file only."""
        return {"STACK_STORE_ENDPOINT": self.endpoint, CREDENTIALS: str(self.credentials)}

    def client(self) -> Any:
        """A client that may write, also buckets."""
        return S3FileSystem(
            access_key=self.key, secret_key=self.secret, region=REGION, scheme="http",
            endpoint_override=f"{_ADDRESS}:{self.port}", allow_bucket_creation=True,
            # A small object is then one request, not the three of an upload in parts.
            allow_delayed_open=True,
        )  # fmt: skip

    def place(self, key: str = "", bucket: str = BUCKET) -> ObjectLocation:
        return ObjectLocation(ObjectStore(self.endpoint, REGION, self.credentials), bucket, key)

    def put(self, key: str, content: bytes) -> ObjectLocation:
        with self.client().open_output_stream(f"{BUCKET}/{key}") as stream:
            stream.write(content)
        return self.place(key)

    def upload(self, folder: Path, key: str) -> ObjectLocation:
        """Copy the files below a folder."""
        client = self.client()

        def put(file: Path) -> None:
            with client.open_output_stream(f"{BUCKET}/{key}/{file.relative_to(folder)}") as stream:
                stream.write(file.read_bytes())

        with ThreadPoolExecutor(_UPLOADS) as pool:
            list(pool.map(put, (file for file in folder.rglob("*") if file.is_file())))
        return self.place(key)

    def stop(self) -> None:
        """Kill the process: its data goes with the folder, and with clients a normal end takes 15 s."""
        self.process.kill()
        self.process.wait()
        for socket in self.sockets:
            socket.unlink(missing_ok=True)


def run_store(folder: Path) -> Iterator[Store]:
    """Start the stack's object store with everything in a folder, yield it once it takes an object, and stop it."""
    environ = own_environment(folder, {"BIND_ADDRESS": _ADDRESS, "STORE_VOLUME_MB": "64"})
    command = tied(str(ROOT / "faultline" / "services" / "store.sh"), "--data", str(folder))
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environ)
    # SeaweedFS has no setting for these; a killed one leaves them behind.
    inner = {"s3": "STORE", "master": "STORE_MASTER", "volume": "STORE_VOLUME", "filer": "STORE_FILER"}
    listens = {each: environ[f"STACK_{name}_GRPC_PORT"] for each, name in inner.items()}
    sockets = [Path(f"/tmp/seaweedfs-{each}-grpc-{port}.sock") for each, port in listens.items()]
    store = Store(folder, int(environ["STACK_STORE_PORT"]), process, sockets)
    try:
        wait_until(lambda: _takes_an_object(store), "the object store", seconds=60)
        yield store
    finally:
        store.stop()


def _takes_an_object(store: Store) -> bool:
    """Return whether it says that it is well, as its service is asked; then it takes an object at once."""
    if store.process.poll() is not None:
        text = (store.folder / "output").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"the object store ended by itself: {text[-2000:]}")
    if not ports.says_ok(_ADDRESS, store.port, _HEALTH):
        return False
    try:
        make_bucket(store.place().store, BUCKET)
    except OSError:
        # On a busy machine the first write, for which it makes volumes, takes longer than the client waits.
        return False
    return True


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for the whole test session; objects that tests put there must have names of their own."""
    yield from run_store(tmp_path_factory.mktemp("store"))
