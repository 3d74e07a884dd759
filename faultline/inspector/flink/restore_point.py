"""The checkpoint that a restore takes, and the offsets at which the job then reads on."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass

from faultline.inspector.errors import NothingToRestore
from faultline.inspector.flink.folder import LATEST, resolve
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.flink.metadata import check_files, load_metadata, operators
from faultline.inspector.flink.offsets import MARKERS, all_offsets, by_partition
from faultline.inspector.flink.rescaling import check_parallelism
from faultline.settings import Settings
from faultline.storage.location import Location


@dataclass(frozen=True)
class RestorePoint:
    """The folder of a checkpoint that can be restored, the newest one, and the offset of each partition."""

    path: Location
    newest: Location
    offsets: dict[str, int]


def restore_point(which: str, root: Location) -> RestorePoint:
    """Find `latest`, `chk-N` or a path. Raises InspectorError when it may not be restored."""
    path = newest = resolve(which, root)
    if which != LATEST:
        # A path may be that of another stack, while this one has none yet.
        with suppress(NothingToRestore):
            newest = resolve(LATEST, root)
    return RestorePoint(path, newest, restore_offsets(path))


def restore_offsets(path: Location) -> dict[str, int]:
    """Read where a restore reads on, partition to offset. Raises InspectorError when it may not be restored."""
    with flink_jvm([path]) as jvm:
        entries = operators(load_metadata(jvm, path))
        check_files(entries)
        check_parallelism(entries, Settings().number("FLINK_PARALLELISM"))
        offsets = all_offsets(jvm, entries)
    if not offsets:
        print(
            f"{path}: no partition had been read yet; a restore starts at the job's own starting offsets",
            file=sys.stderr,
        )
    ends = by_partition(offsets)
    for partition, offset in ends.items():
        if offset in MARKERS:
            words = f"partition {partition} was not read yet: {offset} means its {MARKERS[offset]} record"
            print(words, file=sys.stderr)
    return ends
