"""Parts of a Spark checkpoint that grow: `.compact` files, which keep every entry, and snapshots of the state.

Every tenth entry of the file source's log, and of the file sink's, repeats all entries so far in one file
(CompactibleFileStreamLog).
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.inspector.growth import DAY_MS, bytes_per_day
from faultline.inspector.model import Growth
from faultline.inspector.spark.log import list_log
from faultline.inspector.spark.offsets import PlannedBatch
from faultline.inspector.spark.sources import kind_of, source_folder
from faultline.inspector.spark.state_files import operator_folders
from faultline.inspector.words import count
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location

REWRITTEN = "every compaction writes all of it again"


def read_growth(path: Location, batches: Mapping[int, PlannedBatch], output: Location | None) -> list[Growth]:
    """Say how each compacted log and the state of each operator grow; nothing for what has no history yet.

    A file that a running query deletes meanwhile is left out.
    """
    found = []
    newest = batches[max(batches)] if batches else None
    for name, end in newest.ends.items() if newest else ():
        if kind_of(end) == "file":
            # An entry for each log offset that a batch took.
            taken = [
                (batch.planned_at, int(batch.ends[name]["logOffset"]))
                for batch in batches.values()
                if kind_of(batch.ends.get(name)) == "file"
            ]
            found.append(_compacted(source_folder(path, name, "file"), f"sources/{name}", taken))
    if output is not None:
        found.append(
            _compacted(output / SINK_LOG, SINK_LOG, [(each.planned_at, each.number) for each in batches.values()])
        )
    found += _snapshots(path, batches)
    return [each for each in found if each is not None]


def _compacted(folder: Location, name: str, taken: list[tuple[int, int]]) -> Growth | None:
    """Growth of the newest compact file: bytes of an entry, times the entries of a day.

    `taken`: a time, and the number of the entry that was the newest then.
    """
    log = list_log(folder)
    taken.sort()
    if not log.compact or len(taken) < 2 or taken[0][0] == taken[-1][0]:
        return None
    newest = log.compact[-1]
    try:
        size = (folder / f"{newest}.compact").stat().st_size
    except FileNotFoundError:
        return None
    span = taken[-1][0] - taken[0][0]
    # The compact file has the entries 0 to its own number.
    per_entry = size / (newest + 1)
    per_day = round(per_entry * (taken[-1][1] - taken[0][1]) / span * DAY_MS)
    return Growth(f"{name}/{newest}.compact, {count(newest + 1, 'entry')}", size, per_day, span, REWRITTEN)


def _snapshots(path: Location, batches: Mapping[int, PlannedBatch]) -> list[Growth]:
    """Growth of the HDFS-backed state, by its snapshots: one of version N is the state after batch N - 1.

    RocksDB shares files between its snapshots, whose sizes say nothing.
    """
    found = []
    for operator in operator_folders(path):
        sizes: dict[int, int] = {}
        for file in operator.rglob("[0-9]*.snapshot"):
            version = file.name.removesuffix(".snapshot").partition("_")[0]
            if version.isdecimal() and int(version) - 1 in batches:
                try:
                    sizes[int(version)] = sizes.get(int(version), 0) + file.stat().st_size
                except FileNotFoundError:
                    continue
        if not sizes:
            continue
        times = [(batches[version - 1].planned_at, sizes[version]) for version in sorted(sizes)]
        span = times[-1][0] - times[0][0]
        if span > 0:
            found.append(Growth(f"state of operator {operator.name}", times[-1][1], bytes_per_day(times), span))
    return found
