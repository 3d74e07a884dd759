"""Locations in an object store that speaks S3, read by Arrow's own client.

A store has no folders: a folder exists as long as an object's name begins with it. Nothing is written here but a
probe, and the bucket of a stack's own store.
"""

from __future__ import annotations

import configparser
import errno
import functools
import io
import os
import re
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from faultline.settings import Settings, SettingsError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from faultline.storage.location import Location

SCHEMES = ("s3", "s3a")
CREDENTIALS = "AWS_SHARED_CREDENTIALS_FILE"
"""The variable that names the file with the key; the same one that Spark's and Amazon's own clients read."""
REGION = "us-east-1"
"""Signatures need one; a store on one machine takes any."""
_KEYS = ("aws_access_key_id", "aws_secret_access_key")
_CONNECT_SECONDS, _ANSWER_SECONDS, _ATTEMPTS = 2, 3, 2
"""A store that is down is an error within seconds; the client's own limits are for stores far away."""
_BUFFER_BYTES = 1 << 16
_CODE = re.compile(r"AWS Error ([A-Z_0-9]+)")
_GONE = {"NO_SUCH_BUCKET", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND"}
_REFUSED = {"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID"}
_FAILED = re.compile(r"HTTP status 5\d\d|INTERNAL_FAILURE|SERVICE_UNAVAILABLE|SLOW_DOWN")
_NO_ANSWER = {"NETWORK_CONNECTION", "REQUEST_TIMEOUT"}


class LocationError(SettingsError):
    """No location can be read at this word, or with these settings; the message has the cause and the next step."""


@dataclass(frozen=True)
class ObjectStore:
    """An object store: its address such as `http://HOST:PORT`, its region, and the file with the key."""

    endpoint: str
    region: str
    credentials: Path

    def keys(self) -> tuple[str, str]:
        """Read the id of the key and the secret. Raises LocationError."""
        parser = configparser.ConfigParser(interpolation=None)
        profile = os.environ.get("AWS_PROFILE") or "default"
        try:
            parser.read_string(self.credentials.read_text(encoding="utf-8"))
            section = parser[profile]
            return section[_KEYS[0]], section[_KEYS[1]]
        except OSError as error:
            raise LocationError(f"{self.credentials} cannot be read: {error.strerror}; {self._file_of_key}") from None
        except (ValueError, KeyError, configparser.Error):
            raise LocationError(
                f"{self.credentials} lacks {' or '.join(_KEYS)} in its section [{profile}]; {self._file_of_key}"
            ) from None

    @property
    def _file_of_key(self) -> str:
        return f"it is the file with the key of the object store at {self.endpoint}"


class Known(NamedTuple):
    """Metadata of a location, under the names of `os.stat_result`."""

    st_mode: int
    st_size: int
    st_mtime: float


@dataclass(frozen=True)
class ObjectLocation:
    """An object, or the folder that names of objects begin with.

    What `iterdir`, `glob` and `rglob` return knows its kind, size and time from their listing, and asks no more.
    """

    store: ObjectStore
    bucket: str
    key: str
    known: Known | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"s3://{self._path}"

    def __lt__(self, other: ObjectLocation) -> bool:
        return (self.bucket, self.key) < (other.bucket, other.key)

    def __truediv__(self, key: str, /) -> ObjectLocation:
        return ObjectLocation(self.store, self.bucket, "/".join(part for part in (self.key, key.strip("/")) if part))

    @property
    def _path(self) -> str:
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    @property
    def name(self) -> str:
        """The last part of the name; the bucket's for the bucket itself."""
        return self._path.rpartition("/")[2]

    @property
    def parent(self) -> ObjectLocation:
        """The folder that it is in; the bucket is its own."""
        return ObjectLocation(self.store, self.bucket, self.key.rpartition("/")[0])

    def is_absolute(self) -> bool:
        """Always true."""
        return True

    def absolute(self) -> ObjectLocation:
        """The location itself."""
        return self

    def resolve(self) -> ObjectLocation:
        """The location itself: a store has no links."""
        return self

    def relative_to(self, other: ObjectLocation, /) -> PurePosixPath:
        """Its path below another location of the same bucket."""
        if (self.store, self.bucket) != (other.store, other.bucket):
            raise ValueError(f"{self} is not below {other}")
        return PurePosixPath(self.key).relative_to(other.key)

    def as_uri(self) -> str:
        """Its URI."""
        return f"s3://{self.bucket}/{quote(self.key)}"

    def exists(self) -> bool:
        """Return whether there is such an object or folder."""
        return self._look() is not None

    def is_file(self) -> bool:
        """Return whether it is an object."""
        found = self._look()
        return found is not None and stat.S_ISREG(found.st_mode)

    def is_dir(self) -> bool:
        """Return whether objects have names that begin with it."""
        found = self._look()
        return found is not None and stat.S_ISDIR(found.st_mode)

    def stat(self) -> Known:
        """Its kind, size and time; a folder has time 0, since a store has no folders."""
        found = self._look()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return found

    def iterdir(self) -> Iterator[ObjectLocation]:
        """Objects and folders in this folder, by one listing."""
        return iter(self._list(recursive=False))

    def glob(self, pattern: str) -> Iterator[ObjectLocation]:
        """Objects and folders whose path below this folder fits, part by part; none when the folder is not there."""
        found = [self]
        for part in pattern.split("/"):
            found = [child for folder in found for child in folder._children() if fnmatchcase(child.name, part)]
        return iter(found)

    def rglob(self, pattern: str) -> Iterator[ObjectLocation]:
        """Objects and folders at any depth whose name fits, by one listing; none when the folder is not there."""
        try:
            return (each for each in self._list(recursive=True) if fnmatchcase(each.name, pattern))
        except (FileNotFoundError, NotADirectoryError):
            return iter(())

    def open(self, mode: Literal["rb"], /) -> BufferedReader:
        """Open the object; parts of it are fetched as they are read."""
        assert mode == "rb"
        if not self.key:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self))
        with self._translated():
            return BufferedReader(_Object(self, _client(self.store).open_input_file(self._path)), _BUFFER_BYTES)

    def read_bytes(self) -> bytes:
        """The content of the object."""
        with self.open("rb") as stream:
            return stream.read()

    def read_text(self, encoding: str | None = None) -> str:
        """The content of the object as text, with line ends as `pathlib` reads them."""
        return io.TextIOWrapper(io.BytesIO(self.read_bytes()), encoding=encoding or "utf-8").read()

    def probe(self, size: int) -> None:
        """Write an object of so many bytes below this folder, and remove it. Raises OSError."""
        path = f"{self._path}/.writable-{uuid.uuid4().hex}"
        with self._translated():
            client = _client(self.store)
            with client.open_output_stream(path) as stream:
                stream.write(bytes(size))
            client.delete_file(path)

    def _look(self) -> Known | None:
        if self.known is not None:
            return self.known
        with self._translated():
            found = _known(_client(self.store).get_file_info(self._path))
        if found is None:
            _require_bucket(self.store, self.bucket)
        return found

    def _list(self, *, recursive: bool) -> list[ObjectLocation]:
        from pyarrow.fs import FileSelector  # noqa: PLC0415  # not in the environment of the page

        with self._translated():
            found = _client(self.store).get_file_info(FileSelector(self._path, recursive=recursive))
        return [
            ObjectLocation(self.store, self.bucket, each.path.removeprefix(f"{self.bucket}/"), _known(each))
            for each in found
        ]

    def _children(self) -> list[ObjectLocation]:
        try:
            return self._list(recursive=False)
        except (FileNotFoundError, NotADirectoryError):
            return []

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the client's errors into those of a path."""
        try:
            yield
        except OSError as error:
            said = self._error(error)
            if isinstance(said, FileNotFoundError):
                _require_bucket(self.store, self.bucket)
            raise said from None

    def _error(self, error: OSError) -> OSError:
        found = _CODE.search(str(error))
        code = found[1] if found else ""
        if isinstance(error, NotADirectoryError):
            return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self))
        if isinstance(error, FileNotFoundError) or code in _GONE:
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        if code in _REFUSED:
            return PermissionError(
                errno.EACCES, f"the object store refuses the key of {self.store.credentials}", str(self)
            )
        if code in _NO_ANSWER:
            return OSError(errno.EIO, f"the object store at {self.store.endpoint} does not answer", str(self))
        if status := _FAILED.search(str(error)):
            words = f"the object store at {self.store.endpoint} fails: {status[0]}"
            return OSError(errno.EIO, words, str(self))
        return OSError(errno.EIO, f"the object store at {self.store.endpoint}: {error}", str(self))


class _Object(io.RawIOBase):
    """An open object, for Python's own buffered reader."""

    def __init__(self, location: ObjectLocation, native: Any) -> None:
        super().__init__()
        self._place, self._native = location, native

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return int(self._native.seek(offset, whence))

    def tell(self) -> int:
        return int(self._native.tell())

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        with self._place._translated():
            data = self._native.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        # Python's own would fetch 8 KiB at a time.
        with self._place._translated():
            return bytes(self._native.read())

    def close(self) -> None:
        if not self.closed:
            self._native.close()
        super().close()


def make_bucket(store: ObjectStore, bucket: str) -> None:
    """Make a bucket, which may be there already, and see that the store takes an object. Raises OSError."""
    location = ObjectLocation(store, bucket, "")
    with location._translated():
        _client(store, makes_buckets=True).create_dir(bucket)
    location.probe(1)


@functools.cache
def _client(store: ObjectStore, *, makes_buckets: bool = False) -> Any:
    """Make the client of a store, once in a process."""
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem  # noqa: PLC0415

    try:
        access_key, secret_key = store.keys()
    except LocationError as error:
        raise PermissionError(errno.EACCES, str(error), str(store.credentials)) from None
    scheme, _, address = store.endpoint.partition("://")
    return S3FileSystem(
        access_key=access_key,
        secret_key=secret_key,
        region=store.region,
        scheme=scheme,
        # With an address of its own, the bucket is a part of the path and not of the host's name.
        endpoint_override=address,
        allow_bucket_creation=makes_buckets,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_ANSWER_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


@functools.cache
def _require_bucket(store: ObjectStore, bucket: str) -> None:
    """Raise OSError when the store has no such bucket; it is asked until it has.

    A wrong name of the bucket, or the address of another server, must not look like data that is not there.
    """
    location = ObjectLocation(store, bucket, "")
    try:
        found = _known(_client(store).get_file_info(bucket))
    except OSError as error:
        raise location._error(error) from None
    if found is None:
        raise OSError(errno.EIO, f"the object store at {store.endpoint} has no bucket {bucket}", str(location))


def _known(info: Any) -> Known | None:
    from pyarrow.fs import FileType  # noqa: PLC0415

    if info.type == FileType.NotFound:
        return None
    if info.type == FileType.Directory:
        return Known(stat.S_IFDIR | 0o555, 0, 0.0)
    return Known(stat.S_IFREG | 0o444, info.size, info.mtime_ns / 1e9)


def store_among(locations: Iterable[Location]) -> ObjectStore | None:
    """The object store that these locations are in; None when all are on a disk."""
    return next((location.store for location in locations if isinstance(location, ObjectLocation)), None)


def store_of(settings: Settings) -> ObjectStore:
    """The object store of this stack, or the one that the settings and the environment name.

    Its key is read to see that it is there. Raises SettingsError.
    """
    endpoint = settings.store_endpoint
    if settings.has_own_store:
        file, region = settings.store_credentials, REGION
        if not file.exists():
            raise LocationError(f"{file} is missing; the object store makes it when it starts: scripts/start.sh store")
    elif named := os.environ.get(CREDENTIALS):
        file, region = Path(named), os.environ.get("AWS_REGION", REGION)
    else:
        raise LocationError(
            f"{CREDENTIALS} is not set: no key for the object store at {endpoint}; set it to a file with a section "
            f"[default] that has {' and '.join(_KEYS)}"
        )
    store = ObjectStore(endpoint, region, file)
    store.keys()
    return store


def object_location(word: str, settings: Settings) -> ObjectLocation:
    """The location that `s3://bucket/path` names, in the store of the settings. Raises SettingsError."""
    scheme, _, path = word.partition("://")
    bucket, _, key = path.partition("/")
    if scheme not in SCHEMES or not bucket:
        raise LocationError(f"{word} names no location; write a path, or s3://BUCKET/PATH")
    return ObjectLocation(store_of(settings), bucket, "/".join(part for part in key.split("/") if part))
