"""Places in a real object store: what is read there, and what is said when it cannot be."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psutil
import pytest

from faultline.inspector.flink.folder import list_folders, resolve
from faultline.settings import Settings, SettingsError
from faultline.storage.objects import CREDENTIALS, LocationError, ObjectLocation
from faultline.storage.reading import changed_at, names, posix_path, read, size_below, walk
from faultline.storage.words import location_of
from faultline.storage.writing import require_writable
from faultline.waiting import wait_until
from tests.golden.archives import golden
from tests.stack.store import Store, run_store

pytestmark = [pytest.mark.ci, pytest.mark.timeout(180)]

FOLDER = golden("spark-4.0") / "kafka_files"
SECONDS = 15
"""A store that does not answer is an error by then; the client asks twice, 3 s each."""


@pytest.fixture(scope="module")
def uploaded(store: Store) -> ObjectLocation:
    return store.upload(FOLDER, "object-place")


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """A store that the test may break."""
    yield from run_store(tmp_path)


def below(root: Path) -> dict[str, Path]:
    return {str(path.relative_to(root)): path for path in root.rglob("*")}


def test_names_sizes_and_kinds_are_those_of_the_files(uploaded: ObjectLocation) -> None:
    found = {str(each.relative_to(uploaded)): each for each in uploaded.rglob("*")}
    expected = below(FOLDER)
    assert found.keys() == expected.keys()
    for name, place in found.items():
        # Once as the listing says, and once asked for alone.
        for each in (place, uploaded / name):
            assert (each.is_dir(), each.is_file(), each.exists()) == (
                expected[name].is_dir(), expected[name].is_file(), True,
            )  # fmt: skip
            assert each.name == expected[name].name
            if each.is_file():
                assert each.stat().st_size == expected[name].stat().st_size
                assert each.read_bytes() == expected[name].read_bytes()


def test_listings_are_those_of_the_folder(uploaded: ObjectLocation) -> None:
    assert sorted(names(uploaded)) == sorted(names(FOLDER))
    assert sorted(names(uploaded / "checkpoint" / "offsets")) == sorted(names(FOLDER / "checkpoint" / "offsets"))
    assert read(uploaded / "checkpoint", "metadata") == read(FOLDER / "checkpoint", "metadata")
    assert size_below(uploaded) == size_below(FOLDER)
    skipped = ("_", ".")
    assert walk(uploaded / "output", skipped) == walk(FOLDER / "output", skipped)
    for pattern in ("checkpoint/offsets/[0-9]*", "*/commits/*", "checkpoint/none/*", "none"):
        globbed = [str(each.relative_to(uploaded)) for each in uploaded.glob(pattern)]
        assert sorted(globbed) == sorted(str(each.relative_to(FOLDER)) for each in FOLDER.glob(pattern))
    assert list((uploaded / "none").rglob("*")) == []


def test_flinks_folders_are_listed_like_those_on_a_disk(store: Store, tmp_path: Path) -> None:
    source = golden("flink-2.2")
    job = tmp_path / ("0" * 32)
    for number, checkpoint in enumerate(sorted({file.parent for file in source.rglob("_metadata")}), 1):
        shutil.copytree(checkpoint, job / f"chk-{number}")
    (job / "chk-1" / "_metadata").write_bytes(b"")
    (job / "chk-2" / "_metadata").rename(job / "chk-2" / "_metadata.inprogress")
    root = store.upload(tmp_path, "flink-folders")
    facts = [
        [(each.job_id, each.name, each.number, each.complete, each.reason, each.size) for each in list_folders(place)]
        for place in (tmp_path, root)
    ]
    assert facts[0] == facts[1]
    assert [complete for *_, complete, _, _ in facts[1]][:2] == [False, False]
    newest = facts[1][-1][1]
    assert resolve("latest", root) == root / job.name / newest
    assert resolve("chk-3", root) == root / job.name / "chk-3"


def test_a_part_of_an_object_is_read_where_it_is(store: Store) -> None:
    content = b"".join(b"line %d\n" % number for number in range(500_000))
    place = store.put("large/lines", content)
    with place.open("rb") as stream:
        assert stream.read(7) == content[:7]
        stream.seek(3_000_000)
        assert stream.tell() == 3_000_000
        assert stream.readline() == content[3_000_000 : content.index(b"\n", 3_000_000) + 1]
        stream.seek(-9, os.SEEK_END)
        assert stream.read() == content[-9:]
        assert stream.read(1) == b""
    assert place.read_bytes() == content


def test_a_folder_is_tried_by_writing_and_left_without_a_file(store: Store, tmp_path: Path) -> None:
    for folder in (tmp_path / "tried", store.place("tried")):
        require_writable(folder, 70_000)
        assert list(folder.rglob("*")) == []
    nobody = tmp_path / "nobody"
    nobody.write_text("[default]\naws_access_key_id = nobody\naws_secret_access_key = nothing\n")
    refused = replace(store.place("tried"), store=replace(store.place().store, credentials=nobody))
    with pytest.raises(PermissionError, match=f"refuses the key of {nobody}"):
        require_writable(refused, 1)
    with pytest.raises(OSError, match="has no bucket none"):
        require_writable(store.place("tried", bucket="none"), 1)


def test_text_is_read_like_that_of_a_path(store: Store, tmp_path: Path) -> None:
    content = "v1\r\n\u00fcber\r\n".encode()
    (tmp_path / "text").write_bytes(content)
    place = store.put("text/windows", content)
    assert place.read_text("utf-8") == (tmp_path / "text").read_text("utf-8")
    with pytest.raises(UnicodeDecodeError):
        store.put("text/binary", b"\xff\xfe\xff").read_text()


def test_a_folder_is_as_new_as_its_newest_object(store: Store) -> None:
    before = time.time()
    store.put("aged/a", b"1")
    store.put("aged/deep/b", b"2")
    folder = store.place("aged")
    assert stat.S_ISDIR(folder.stat().st_mode)
    changed = changed_at(folder, [each.stat() for each in folder.iterdir()])
    assert before - 2 < changed < time.time() + 2
    assert changed == (folder / "a").stat().st_mtime


def test_names_are_built_like_those_of_a_path(store: Store) -> None:
    place = store.place("a b/c") / "d=1/" / "e"
    assert str(place) == "s3://faultline/a b/c/d=1/e"
    assert place.as_uri() == "s3://faultline/a%20b/c/d%3D1/e"
    assert str(posix_path(place)) == "/a b/c/d=1/e"
    assert (place.name, place.parent.name, str(place.relative_to(store.place("a b")))) == ("e", "d=1", "c/d=1/e")
    assert str(store.place()) == "s3://faultline"
    assert store.place().parent == store.place()
    with pytest.raises(ValueError, match="is not below"):
        place.relative_to(store.place(bucket="other"))


def test_what_is_not_there_is_said_like_on_a_disk(store: Store, uploaded: ObjectLocation) -> None:
    place = uploaded / "none"
    assert not place.exists()
    for act in (place.stat, place.read_bytes, place.iterdir):
        with pytest.raises(FileNotFoundError) as caught:
            act()
        assert caught.value.filename == str(place)
        assert caught.value.strerror == "No such file or directory"
    with pytest.raises(FileNotFoundError):
        (uploaded / "checkpoint").read_bytes()
    with pytest.raises(FileNotFoundError):
        walk(uploaded / "none", ("_",))
    with pytest.raises(IsADirectoryError):
        store.place().read_bytes()


class NotAStore(BaseHTTPRequestHandler):
    """A web server: what a wrong port may lead to."""

    status = 404

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def web_server(status: int) -> Iterator[str]:
    handler = type("Answering", (NotAStore,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def acts_of(place: ObjectLocation) -> list[Callable[[], object]]:
    return [place.exists, place.is_dir, place.stat, place.read_bytes, place.iterdir]


@pytest.mark.parametrize("bucket", ["no-such-bucket", "x.y"])
def test_a_missing_bucket_is_an_error_and_not_an_absence(store: Store, bucket: str) -> None:
    for act in acts_of(store.place("x", bucket=bucket)):
        with pytest.raises(OSError, match="has no bucket") as caught:
            act()
        assert caught.value.strerror == f"the object store at {store.endpoint} has no bucket {bucket}"
        assert caught.value.filename == f"s3://{bucket}"


@pytest.mark.parametrize(("status", "said"), [(404, "has no bucket faultline"), (503, "fails: ")])
def test_another_server_at_the_address_is_an_error(uploaded: ObjectLocation, status: int, said: str) -> None:
    with web_server(status) as address:
        for act in acts_of(replace(uploaded, store=replace(uploaded.store, endpoint=address))):
            with pytest.raises(OSError, match=said) as caught:
                act()
            assert str(caught.value.strerror).startswith(f"the object store at {address} {said}")


def test_a_wrong_key_is_no_permission(store: Store, uploaded: ObjectLocation, tmp_path: Path) -> None:
    for name, key, secret in (("id", "nobody", store.secret), ("secret", store.key, store.secret[::-1])):
        file = tmp_path / name
        file.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
        refused = replace(uploaded, store=replace(uploaded.store, credentials=file))
        for act in (refused.exists, refused.stat, (refused / "checkpoint" / "metadata").read_bytes, refused.iterdir):
            with pytest.raises(PermissionError) as caught:
                act()
            assert caught.value.strerror == f"the object store refuses the key of {file}"
            assert store.secret not in str(caught.value)


def test_a_store_that_is_stopped_or_killed_is_an_error_within_seconds(own_store: Store) -> None:
    own = psutil.Process(own_store.process.pid)
    place = own_store.put("down/file", bytes(1 << 20))
    stream = place.open("rb")
    for number in (signal.SIGSTOP, signal.SIGKILL):
        own_store.process.send_signal(number)
        if number == signal.SIGKILL:
            own_store.process.wait()
        else:
            wait_until(lambda: own.status() == psutil.STATUS_STOPPED, "the store to stop", seconds=10)
        for act in (place.exists, (place / "x").iterdir, place.read_bytes, stream.read):
            begin = time.monotonic()
            with pytest.raises(OSError, match="does not answer") as caught:
                act()
            assert time.monotonic() - begin < SECONDS
            assert caught.value.strerror == f"the object store at {own_store.endpoint} does not answer"
            assert str(caught.value.filename).startswith(str(place))


def test_a_place_reaches_another_process_without_the_key(store: Store, uploaded: ObjectLocation) -> None:
    sent = pickle.dumps(uploaded)
    assert store.secret.encode() not in sent
    assert store.key.encode() not in sent
    assert pickle.loads(sent) == uploaded


def test_the_store_listens_on_loopback_only_and_calls_nobody(store: Store, uploaded: ObjectLocation) -> None:
    found = psutil.Process(store.process.pid).net_connections("inet")
    listening = [each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"] * 8
    assert {each.raddr.ip for each in found if each.raddr} <= {"127.0.0.1"}


def test_a_word_with_a_scheme_names_a_place_in_the_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    expected = store.place("object-place/checkpoint")
    for word in ("s3://faultline/object-place/checkpoint/", "s3a://faultline//object-place/checkpoint"):
        assert location_of(word, Settings()) == expected
    assert location_of("checkpoints/spark", Settings()) == Path("checkpoints/spark")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (CREDENTIALS, "", "AWS_SHARED_CREDENTIALS_FILE is not set"),
        (CREDENTIALS, "/nowhere/credentials", "/nowhere/credentials cannot be read: No such file or directory"),
        (CREDENTIALS, os.devnull, "lacks aws_access_key_id or aws_secret_access_key"),
        ("STACK_STORE_ENDPOINT", "", "setting STORE_ENDPOINT is missing"),
        ("STACK_STORE_ENDPOINT", "127.0.0.1:1", "not of the form http://HOST:PORT"),
    ],
)
def test_what_is_missing_to_reach_the_store_is_said(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    for each, own in (store.environment | {name: value}).items():
        monkeypatch.setenv(each, own)
    with pytest.raises(SettingsError, match=said):
        location_of("s3://faultline/x", Settings())


@pytest.mark.parametrize("word", ["s3://", "gs://bucket/x", "http://127.0.0.1/x"])
def test_a_word_of_another_scheme_is_refused(word: str) -> None:
    with pytest.raises(LocationError, match="names no location"):
        location_of(word, Settings())
