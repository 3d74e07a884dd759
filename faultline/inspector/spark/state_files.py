"""The files of Spark's state stores: which versions are there, and whether the one that a restart needs can be loaded.

Batch N loads version N of each store: the newest snapshot up to it, then the changes of every version after that. The
HDFS-backed provider writes `N.delta` and `N.snapshot` (HDFSBackedStateStoreProvider.loadMap), RocksDB `N.changelog` and
`N.zip`, which lists the files in `SSTs/` and `logs/` that belong to it (RocksDBFileManager), and with state ids
`N_ID.changelog` and `N_ID.zip`, of which a commit names those of its attempt. This module reads names, sizes, first
bytes and that list; the rest is in formats of Spark and RocksDB, and is not read. Which provider reads them is in the
log of offsets (OffsetSeqMetadata.relevantSQLConfs); the files of any other provider mean nothing here.
"""

from __future__ import annotations

import contextlib
import json
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faultline.inspector.spark.log import fits_checksum
from faultline.inspector.spark.operator_metadata import MetadataError, logged_files
from faultline.inspector.spark.operator_metadata import read as read_metadata
from faultline.inspector.words import count
from faultline.storage.location import Location

NAME = re.compile(r"(0|[1-9][0-9]{0,18})(_[0-9a-f-]+)?\.(delta|snapshot|changelog|zip)(\.crc)?")
CHANGES = ("delta", "changelog")
OF_SPARK = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {
    f"{OF_SPARK}HDFSBackedStateStoreProvider": ("delta", "snapshot"),
    f"{OF_SPARK}RocksDBStateStoreProvider": ("changelog", "zip"),
}
"""The providers of Spark, the default first, and the kinds of files that each reads."""
DEFAULT_PROVIDER = next(iter(PROVIDERS))
NULS = bytes(16)
"""The beginning of a file that a crash of the machine left without its content; no codec begins a file so."""
DEFAULT_STORE = "default"
"""The store whose files are in the folder of the partition itself (StateStoreId.storeCheckpointLocation)."""
_ENTRY, _ENTRY_BYTES = b"PK\3\4", 30
_HAS_DESCRIPTOR, _DESCRIPTOR_BYTES = 8, 16
"""A zip's entry begins so; Java writes its sizes behind its content (java.util.zip.ZipOutputStream)."""
SHOWN = 3
"""Missing versions that a sentence names."""
LISTED_IN = {".sst": "SSTs", ".log": "logs"}
"""Folders of RocksDB's own files, by their suffix (RocksDBFileManager.dfsFilePath)."""

StateIds = Mapping[str, Sequence[Sequence[str]]]
"""Operator -> for each partition the ids of its stores, as a commit of version 2 has them."""


@dataclass
class StoreFiles:
    """The files of one store in one partition: names of changes and snapshots by version, with their ids."""

    path: Location
    changes: dict[int, list[str]] = field(default_factory=dict)
    snapshots: dict[int, list[str]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)
    strays: list[str] = field(default_factory=list)
    has_ids: bool = False
    has_checksums: bool = False
    formats: tuple[str, str] = PROVIDERS[f"{OF_SPARK}HDFSBackedStateStoreProvider"]
    """Kinds of changes and of snapshots that the provider reads."""

    def missing(self, version: int, ids: Mapping[int, Sequence[str]], most_replayed: int | None) -> str:
        """Say why a version cannot be loaded; empty when nothing that is looked at stands against it.

        `ids`: by version those that the commits name, none without state ids. `most_replayed`: the release takes an
        older snapshot where the newest one cannot be read, with so many changes at most; None: it takes none.
        """
        repairs = most_replayed is not None
        self._keep(ids)
        if ids.get(version) and version not in self.changes and version not in self.snapshots:
            return f"{self.path} has no file {version}_{ids[version][0]}: the commit names the state of that attempt"
        if not ids and (why := self._stray(version, repairs)):
            return why
        base, broken = 0, ""
        for candidate in sorted((each for each in self.snapshots if each <= version), reverse=True):
            why = self.broken(candidate)
            if not why:
                base = candidate
                break
            broken = broken or why
            if not repairs:
                return broken
        why = self._changes(base, version)
        return (broken or why) if why or (broken and version - base > (most_replayed or 0)) else ""

    def _keep(self, ids: Mapping[int, Sequence[str]]) -> None:
        """Forget the files of attempts that no commit names: a load follows the ids (RocksDB.loadWithCheckpointId)."""
        for files in (self.changes, self.snapshots):
            for version in files.keys() & ids.keys():
                own = tuple(f"{version}_{each}." for each in ids[version])
                files[version] = [name for name in files[version] if name.startswith(own)]
                if not files[version]:
                    del files[version]

    def _stray(self, version: int, repairs: bool) -> str:
        """Name a file that is called like a snapshot and has no version: Spark reads one from the name of each.

        Releases that repair list all snapshots (SnapshotLoaderHelper.getEligibleSnapshotsForVersion), others those of
        RocksDB where the newest version has none (RocksDBFileManager.getLatestSnapshotVersion).
        """
        kind = self.formats[1]
        if not repairs and (kind == "snapshot" or version in self.snapshots):
            return ""
        strays = [name for name in self.strays if name.endswith(f".{kind}")]
        return f"{self.path / strays[0]} has no version in its name, and Spark lists all snapshots" if strays else ""

    def _changes(self, base: int, version: int) -> str:
        """Say which of the changes after a snapshot are missing or empty."""
        have = sum(1 for each in self.changes if base < each <= version)
        if have < version - base:
            lacking = _first_lacking(self.changes, base + 1, version)
            # A store that keeps only snapshots lacks the newest snapshot, not changes.
            changes, snapshots = self.formats
            kind = changes if self.changes or not self.kinds else snapshots
            shown = ", ".join(f"{each}.{kind}" for each in lacking) + (
                " and more" if version - base - have > len(lacking) else ""
            )
            return f"{self.path} has no {shown}, of which batch {version} makes its state"
        for each in range(base + 1, version + 1):
            reasons = [_hollow(self.path / name) for name in self.changes[each]]
            if "" not in reasons:
                return f"{self.path / self.changes[each][0]} {reasons[0]}, and batch {version} makes its state of it"
        return ""

    def broken(self, version: int) -> str:
        """Say why no snapshot of a version can be loaded: it is empty, or a file that it lists is not whole."""
        reasons = [_broken_snapshot(self.path, name) for name in self.snapshots[version]]
        return "" if "" in reasons else reasons[0]


def _first_lacking(there: Mapping[int, object], first: int, last: int) -> list[int]:
    """The first few of the versions that are not there; a stray name can make the range very long."""
    found: list[int] = []
    for each in range(first, last + 1):
        if each not in there:
            found.append(each)
            if len(found) == SHOWN:
                break
    return found


def _hollow(file: Location) -> str:
    """Say that a file has no content, or only NULs where it begins; empty when it has some."""
    if file.stat().st_size == 0:
        return "is empty"
    with file.open("rb") as content:
        return "begins with NULs" if content.read(len(NULS)) == NULS else ""


def _broken_snapshot(folder: Location, name: str) -> str:
    file = folder / name
    hollow = _hollow(file)
    if hollow:
        return f"{file} {hollow}"
    if not name.endswith(".zip"):
        return ""
    if not fits_checksum(folder, name):
        return f"{file} does not fit the checksum in .{name}.crc, which Hadoop compares"
    sizes = listed_in(file)
    if sizes is None:
        return f"{file} is not a whole snapshot of RocksDB"
    return next(filter(None, (_broken_part(folder, part, size, name) for part, size in sizes.items())), "")


def _broken_part(folder: Location, part: str, size: int, snapshot: str) -> str:
    file = folder / LISTED_IN.get(part[-4:], "SSTs") / part
    try:
        found = file.stat().st_size
    except FileNotFoundError:
        return f"{file} is missing, which {snapshot} lists"
    except (OSError, ValueError) as error:
        # A name that no file can have, or a file in the place of the folder.
        return f"{file} cannot be read ({error}), and {snapshot} lists it"
    if found != size:
        return f"{file} has {found} bytes, and {snapshot} lists it with {size}"
    hollow = _hollow(file) if size else ""
    return f"{file} {hollow}, and {snapshot} lists it" if hollow else ""


def listed_in(file: Location) -> dict[str, int] | None:
    """Return the files of RocksDB that a snapshot `N.zip` lists, with their bytes; None for one that is not whole."""
    try:
        document = json.loads(_unzipped(file.read_bytes())["metadata"].split(b"\n", 1)[1])
        listed = [*document.get("sstFiles", ()), *document.get("logFiles", ())]
        parts = {str(part["dfsSstFileName" if "dfsSstFileName" in part else "dfsLogFileName"]): part for part in listed}
        return {part: int(found["sizeBytes"]) for part, found in parts.items()}
    except (struct.error, zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None


def _unzipped(content: bytes) -> dict[str, bytes]:
    """Unpack a zip entry by entry, as ZipInputStream of Java does: Spark never looks for the list at its end.

    Raises ValueError, struct.error or zlib.error for one that is cut inside an entry, or damaged.
    """
    found, at = {}, 0
    while content[at : at + 4] == _ENTRY:
        flags, method, size, length, extra = struct.unpack_from("<6xHH8xI4xHH", content, at)
        begin = at + _ENTRY_BYTES + length + extra
        name = content[at + _ENTRY_BYTES : at + _ENTRY_BYTES + length].decode()
        if method:
            stream = zlib.decompressobj(-zlib.MAX_WBITS)
            found[name] = stream.decompress(content[begin:])
            if not stream.eof:
                raise ValueError(f"{name} is cut short")
            at = len(content) - len(stream.unused_data)
        else:
            found[name] = content[begin : begin + size]
            at = begin + size
        at += _DESCRIPTOR_BYTES if flags & _HAS_DESCRIPTOR else 0
    return found


def operator_folders(checkpoint: Location) -> list[Location]:
    """List the folders of the state operators, `state/N`, in the order of their numbers; empty without state."""
    state = checkpoint / "state"
    return numbered(state) if state.is_dir() else []


def numbered(folder: Location) -> list[Location]:
    """Subfolders that are called by a number: a store may leave markers such as `0_$folder$` beside them."""
    found = [each for each in folder.iterdir() if each.name.isdecimal() and each.name.isascii() and each.is_dir()]
    return sorted(found, key=lambda path: int(path.name))


def read_store(folder: Location) -> StoreFiles:
    """List one store's folder; a folder that is not there has no files."""
    found = StoreFiles(folder)
    for child in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(child.name)
        if match is None or not child.is_file():
            found.strays += [child.name] if child.name.endswith((".snapshot", ".zip")) and match is None else []
            continue
        if match[4]:
            found.has_checksums = True
            continue
        found.kinds.add(match[3])
        found.has_ids |= match[2] is not None
        (found.changes if match[3] in CHANGES else found.snapshots).setdefault(int(match[1]), []).append(child.name)
    return found


def stores_of(operator: Location, partitions: int) -> list[StoreFiles]:
    """List the stores of an operator in all its partitions: in a partition's folder, or each in its own folder.

    `partitions`: how many there have to be, 0 where that is not known; a stray folder after them is not read.
    """
    return [store for _, stores in _partitions(operator, partitions) for store in stores]


def _partitions(operator: Location, partitions: int) -> Iterator[tuple[int, list[StoreFiles]]]:
    there = {int(each.name): each for each in numbered(operator)}
    names = _stores(operator, there.values()) - {DEFAULT_STORE}
    # An operator without a key has one partition, whatever the number of shuffle partitions is.
    # Behind existing partitions, only the first missing one is named.
    wanted = {0} if set(there) == {0} and not _has_key(operator) else set(range(min(partitions, len(there) + 1)))
    for number in sorted(wanted or there):
        folder = operator / str(number)
        yield number, [read_store(folder / name) for name in sorted(names)] if names else [read_store(folder)]


def _stores(operator: Location, partitions: Iterable[Location]) -> set[str]:
    """Name the stores of an operator: by its metadata, which Spark before 4.0 writes not, else by their folders."""
    with contextlib.suppress(MetadataError):
        if metadata := read_metadata(operator):
            return {name for name, _ in metadata.stores}
    inside = (each for folder in partitions for each in folder.iterdir() if each.name not in LISTED_IN.values())
    return {each.name for each in inside if each.is_dir() and read_store(each).kinds}


def _has_key(operator: Location) -> bool:
    """Return whether the key of an operator has fields, by the schema that partition 0 keeps (StateSchemaV2).

    A limit has one row, under a key of no value (StreamingGlobalLimitExec).
    """
    schema = operator / "0" / "_metadata" / "schema"
    try:
        _, found, rest = schema.read_bytes().partition(b'{"type":"struct","fields":[')
    except OSError:
        return False
    return bool(found) and not rest.startswith((b"]", b'{"name":"key","type":"void"', b'{"name":"key","type":"null"'))


def words_of(stores: list[StoreFiles]) -> str:
    """Say what there is: the kind of store, and the newest versions that all partitions have."""
    kinds = {kind for store in stores for kind in store.kinds}
    if not kinds:
        return "no state file that is known here"
    rocksdb = bool(kinds & {"changelog", "zip"})
    parts = []
    for versions, noun in (("changes", "change log" if rocksdb else "delta file"), ("snapshots", "snapshot")):
        each_store: list[dict[int, list[str]]] = [getattr(store, versions) for store in stores]
        shared = set.intersection(*map(set, each_store))
        total = sum(len(names) for found in each_store for names in found.values())
        if total:
            newest = f", the newest of version {max(shared)}" if shared else ""
            parts.append(f"{count(total, noun)}{newest}")
    extras = ["named by state ids"] if any(store.has_ids for store in stores) else []
    extras += ["with checksums beside them"] if any(store.has_checksums for store in stores) else []
    return f"{'RocksDB' if rocksdb else 'HDFS-backed'}: {', '.join([*parts, *extras])}"


@dataclass(frozen=True)
class NeededState:
    """The state that a batch loads: its version, and the partitions of each operator by the operator's number.

    Operators without a number of partitions are taken as they are. `ids`: by version those that the commits name.
    `provider`: one of PROVIDERS.
    """

    version: int
    partitions: Mapping[str, int]
    ids: Mapping[int, StateIds]
    provider: str

    def named(self, operator: str, partition: int) -> dict[int, Sequence[str]]:
        """Return the ids of the stores of one partition, by version; empty without state ids."""
        stores = {version: ids.get(operator, ()) for version, ids in self.ids.items()}
        return {version: found[partition] for version, found in stores.items() if partition < len(found)}


def what_is_missing(checkpoint: Location, needed: NeededState, most_replayed: int | None) -> str:
    """Say what the state lacks; empty when nothing is missing. `most_replayed` as for a store."""
    if needed.version == 0:
        return ""
    folders = operator_folders(checkpoint)
    numbers = {int(each.name) for each in folders}
    # An empty folder that does not follow another one is a stray one.
    folders = [each for each in folders if each.name == "0" or int(each.name) - 1 in numbers or any(each.iterdir())]
    return next(filter(None, _reasons(checkpoint, folders, needed, most_replayed)), "")


def _reasons(
    checkpoint: Location, operators: list[Location], needed: NeededState, most_replayed: int | None
) -> Iterator[str]:
    """Yield what stands against a load, one after the other as Spark would meet it, with empty ones between."""
    ids = needed.ids.get(needed.version, {})
    yield _missing_operator(checkpoint / "state", {int(each.name) for each in operators}, ids)
    for operator in operators:
        stores = list(_partitions(operator, needed.partitions.get(operator.name, 0)))
        yield _foreign(operator, stores, needed.provider)
        yield _damaged_metadata(operator)
        for number, found in stores:
            for store in found:
                store.formats = PROVIDERS[needed.provider]
                yield store.missing(needed.version, needed.named(operator.name, number), most_replayed)


def _missing_operator(state: Location, there: set[int], ids: StateIds) -> str:
    """Say which operator has no folder: below the highest, as far as its number is not a stray one, or of a commit."""
    highest = max(there, default=-1)
    expected = {*range(min(max(highest, 0), len(there) + 1)), *(int(each) for each in ids if each.isdecimal())}
    for lacking in sorted(expected - there):
        why = "and the operators after it are there" if lacking < highest else "which the commit names"
        return f"{state / str(lacking)} is missing, {why}"
    return ""


def _damaged_metadata(operator: Location) -> str:
    """Say that metadata of version 2 cannot be read (SchemaValidationUtils); that of version 1 only makes a warning."""
    try:
        read_metadata(operator)
    except MetadataError as error:
        return str(error) if logged_files(operator) else ""
    return ""


def _foreign(operator: Location, stores: list[tuple[int, list[StoreFiles]]], provider: str) -> str:
    """Say that an operator's files are another provider's, or that the schema, which is read first, has no content."""
    kinds = {kind for _, found in stores for store in found for kind in store.kinds}
    if kinds and kinds.isdisjoint(PROVIDERS[provider]):
        return f"{operator} has {', '.join(sorted(kinds))} files, which {provider.rpartition('.')[2]} does not read"
    schema = operator / "0" / "_metadata" / "schema"
    hollow = _hollow(schema) if schema.is_file() else ""
    return f"{schema} {hollow}" if hollow else ""
