"""The files of Spark's state stores, by their names alone: which versions are there, and whether one can be loaded.

Batch N loads version N of each store: the newest snapshot up to it, then the changes of every version after that. The
HDFS-backed provider writes `N.delta` and `N.snapshot`, RocksDB `N.changelog` and `N.zip`, and with state ids
`N_ID.changelog` and `N_ID.zip`. Their content is in formats of Spark and RocksDB, and is not read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from faultline.inspector.words import count
from faultline.storage.place import Place

NAME = re.compile(r"(\d+)(_[0-9a-f-]+)?\.(delta|snapshot|changelog|zip)(\.crc)?")
CHANGES, SNAPSHOTS = ("delta", "changelog"), ("snapshot", "zip")
NOT_STORES = ("_metadata", "SSTs", "archive")


@dataclass
class StoreFiles:
    """The files of one store in one partition: versions that there are changes of, and snapshots of."""

    path: Place
    changes: set[int] = field(default_factory=set)
    snapshots: set[int] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    has_ids: bool = False
    has_checksums: bool = False

    def missing(self, version: int) -> str:
        """Say what is missing to load a version; empty when it is all there."""
        base = max((each for each in self.snapshots if each <= version), default=0)
        lacking = sorted(set(range(base + 1, version + 1)) - self.changes)
        if not lacking:
            return ""
        # A store that keeps only snapshots lacks the newest snapshot, not changes.
        kinds = CHANGES if self.changes else SNAPSHOTS
        kind = next((each for each in kinds if each in self.kinds), "file")
        shown = ", ".join(f"{each}.{kind}" for each in lacking[:3]) + (" and more" if len(lacking) > 3 else "")
        return f"{self.path} has no {shown}, of which batch {version} makes its state"


def operator_folders(checkpoint: Place) -> list[Place]:
    """List the folders of the state operators, `state/N`, in the order of their numbers; empty without state."""
    state = checkpoint / "state"
    return sorted(state.glob("[0-9]*"), key=lambda path: int(path.name)) if state.is_dir() else []


def read_store(folder: Place) -> StoreFiles:
    """List one store's folder; a folder that is not there has no files."""
    found = StoreFiles(folder)
    for child in folder.iterdir() if folder.is_dir() else ():
        match = NAME.fullmatch(child.name)
        if match is None:
            continue
        if match[4]:
            found.has_checksums = True
            continue
        found.kinds.add(match[3])
        found.has_ids |= match[2] is not None
        (found.changes if match[3] in CHANGES else found.snapshots).add(int(match[1]))
    return found


def stores_of(operator: Place, partitions: int) -> list[StoreFiles]:
    """List the stores of an operator in all its partitions: in a partition's folder, or each in its own folder."""
    numbers = {int(each.name) for each in operator.iterdir() if each.name.isdigit()} | set(range(partitions))
    found: list[StoreFiles] = []
    names: set[str] = set()
    for number in sorted(numbers):
        folder = operator / str(number)
        children = folder.iterdir() if folder.is_dir() else ()
        names |= {each.name for each in children if each.is_dir() and each.name not in NOT_STORES}
    for number in sorted(numbers):
        folder = operator / str(number)
        found += [read_store(folder / name) for name in sorted(names)] if names else [read_store(folder)]
    return found


def words_of(stores: list[StoreFiles]) -> str:
    """Say what there is: the kind of store, and the newest versions that all partitions have."""
    kinds = {kind for store in stores for kind in store.kinds}
    if not kinds:
        return "no state file"
    rocksdb = bool(kinds & {"changelog", "zip"})
    parts = []
    for versions, noun in (("changes", "change log" if rocksdb else "delta file"), ("snapshots", "snapshot")):
        sets: list[set[int]] = [getattr(store, versions) for store in stores]
        shared = set.intersection(*sets)
        total = sum(map(len, sets))
        if total:
            newest = f", the newest of version {max(shared)}" if shared else ""
            parts.append(f"{count(total, noun)}{newest}")
    extras = ["named by state ids"] if any(store.has_ids for store in stores) else []
    extras += ["with checksums beside them"] if any(store.has_checksums for store in stores) else []
    return f"{'RocksDB' if rocksdb else 'HDFS-backed'}: {', '.join([*parts, *extras])}"


def what_is_missing(checkpoint: Place, version: int) -> str:
    """Say what the state lacks for batch `version`; empty when nothing is missing."""
    for operator in operator_folders(checkpoint):
        for store in stores_of(operator, 0):
            why = store.missing(version)
            if why:
                return why
    return ""
