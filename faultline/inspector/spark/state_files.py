"""The files of Spark's state stores: which versions are there, and whether the one that a restart needs can be loaded.

Batch N loads version N of each store: the newest snapshot up to it, then the changes of every version after that. The
HDFS-backed provider writes `N.delta` and `N.snapshot` (HDFSBackedStateStoreProvider.loadMap), RocksDB `N.changelog` and
`N.zip`, which lists the files in `SSTs/` and `logs/` that belong to it (RocksDBFileManager), and with state ids
`N_ID.changelog` and `N_ID.zip`, of which a commit names those of its attempt. Looked at are names, sizes and that list:
the rest is in formats of Spark and RocksDB, and is not read here.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from faultline.inspector.words import count
from faultline.storage.location import Location

NAME = re.compile(r"(0|[1-9][0-9]{0,18})(_[0-9a-f-]+)?\.(delta|snapshot|changelog|zip)(\.crc)?")
CHANGES, SNAPSHOTS = ("delta", "changelog"), ("snapshot", "zip")
NOT_STORES = ("_metadata", "SSTs", "logs", "archive")
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
    has_ids: bool = False
    has_checksums: bool = False
    beside: set[str] = field(default_factory=set)
    """Kinds of the operator's other stores, for a store that has no file."""

    def missing(self, version: int, ids: Sequence[str], repairs: bool) -> str:
        """Say why a version cannot be loaded; empty when nothing that is looked at stands against it.

        `ids`: those that the commit names, none without state ids. `repairs`: the release takes an older snapshot where
        the newest one cannot be read (AutoSnapshotLoader).
        """
        if ids:
            there = [*self.changes.get(version, ()), *self.snapshots.get(version, ())]
            if not any(name.startswith(f"{version}_{each}.") for name in there for each in ids):
                return f"{self.path} has no file {version}_{ids[0]}: the commit names the state of that attempt"
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
        return (broken or why) if why else ""

    def _changes(self, base: int, version: int) -> str:
        """Say which of the changes after a snapshot are missing or empty."""
        have = sum(1 for each in self.changes if base < each <= version)
        if have < version - base:
            lacking = _first_lacking(self.changes, base + 1, version)
            # A store that keeps only snapshots lacks the newest snapshot, not changes.
            kinds = CHANGES if self.changes or not self.kinds else SNAPSHOTS
            kind = next((each for each in kinds if each in (self.kinds or self.beside)), "file")
            shown = ", ".join(f"{each}.{kind}" for each in lacking) + (
                " and more" if version - base - have > len(lacking) else ""
            )
            return f"{self.path} has no {shown}, of which batch {version} makes its state"
        for each in range(base + 1, version + 1):
            if all((self.path / name).stat().st_size == 0 for name in self.changes[each]):
                return f"{self.path / self.changes[each][0]} is empty, and batch {version} makes its state of it"
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


def _broken_snapshot(folder: Location, name: str) -> str:
    file = folder / name
    if file.stat().st_size == 0:
        return f"{file} is empty"
    if not name.endswith(".zip"):
        return ""
    sizes = listed_in(file)
    if sizes is None:
        return f"{file} is not a whole snapshot of RocksDB"
    for part, size in sizes.items():
        place = folder / LISTED_IN.get(part[-4:], "SSTs") / part
        try:
            found = place.stat().st_size
        except FileNotFoundError:
            return f"{place} is missing, which {name} lists"
        if found != size:
            return f"{place} has {found} bytes, and {name} lists it with {size}"
    return ""


def listed_in(file: Location) -> dict[str, int] | None:
    """Return the files of RocksDB that a snapshot `N.zip` lists, with their bytes; None for one that is not whole."""
    try:
        with file.open("rb") as content, zipfile.ZipFile(content) as archive:
            document = json.loads(archive.read("metadata").split(b"\n", 1)[1])
        listed = [*document.get("sstFiles", ()), *document.get("logFiles", ())]
        parts = {str(part["dfsSstFileName" if "dfsSstFileName" in part else "dfsLogFileName"]): part for part in listed}
        return {part: int(found["sizeBytes"]) for part, found in parts.items()}
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError,
            NotImplementedError, RecursionError):  # fmt: skip
        return None


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

    `partitions`: how many there have to be, as far as that is known.
    """
    return [store for _, stores in _partitions(operator, partitions) for store in stores]


def _partitions(operator: Location, partitions: int) -> Iterator[tuple[int, list[StoreFiles]]]:
    there = {int(each.name): each for each in numbered(operator)}
    names: set[str] = set()
    for folder in there.values():
        names |= {each.name for each in folder.iterdir() if each.is_dir() and each.name not in NOT_STORES}
    names = {name for name in names if not name.endswith("_$folder$") and not name.startswith(".")}
    # An operator without a key has one partition, whatever the number of shuffle partitions is.
    wanted = {0} if set(there) == {0} and not _has_key(operator) else set(range(partitions))
    for number in sorted(there.keys() | wanted):
        folder = operator / str(number)
        yield number, [read_store(folder / name) for name in sorted(names)] if names else [read_store(folder)]


def _has_key(operator: Location) -> bool:
    """Return whether the key of an operator has fields, by the schema that partition 0 keeps (StateSchemaV2)."""
    schema = operator / "0" / "_metadata" / "schema"
    try:
        _, found, rest = schema.read_bytes().partition(b'{"type":"struct","fields":[')
    except OSError:
        return False
    return bool(found) and not rest.startswith(b"]")


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


def what_is_missing(
    checkpoint: Location, version: int, partitions: Mapping[str, int], ids: StateIds, repairs: bool
) -> str:
    """Say what the state lacks for batch `version`; empty when nothing is missing.

    `partitions`: of each operator, by its number; those that are not named are taken as they are. A store of a provider
    that is not known here has no file of a known name, and nothing is said of it.
    """
    if version == 0:
        return ""
    folders = operator_folders(checkpoint)
    numbers = {int(each.name) for each in folders}
    gone = sorted(set(range(min(max(numbers, default=0), len(numbers) + 1))) - numbers)
    if gone:
        return f"{checkpoint / 'state' / str(gone[0])} is missing, and the operators after it are there"
    for operator in folders:
        named = ids.get(operator.name, ())
        found = list(_partitions(operator, partitions.get(operator.name, 0)))
        kinds = {kind for _, stores in found for store in stores for kind in store.kinds}
        if not kinds:
            continue
        for number, stores in found:
            for store in stores:
                store.beside = kinds
                why = store.missing(version, named[number] if number < len(named) else (), repairs)
                if why:
                    return why
    return ""
