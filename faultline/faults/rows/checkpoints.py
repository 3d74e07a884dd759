"""Damage to Flink's checkpoints, and to the disk below them."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.offsets import Cancelled, Restored
from faultline.faults.judges.windows import RepeatsSinceCheckpoint
from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import CHECKPOINTS_BACK, CHECKPOINTS_ON_A_SMALL_DISK, NOTHING
from faultline.faults.steps import NEWEST, Line, Probe, Refused, Restore, Start, Stop, until

_CANCEL = CATALOGUE["job-cancel"]
_LATEST = (Restore(),)
_WINDOWS_COMMITTED = (Probe("faultline.probes.window_latency", "--ends 1"),)
"""Right after a commit that had windows."""
_RETRIED = "a checkpoint that cannot be written fails, the job goes on, and the next one covers the same visits"
_FILES = "`_metadata` names the files, since large state is not in it; the restore looks at each before it submits"
_LARGE_STATE = (
    Start("generator", "--rate 3000 --active-visits 2000"),
    until(
        120,
        "find {flink} -name _metadata -newer {results}/begin.json | sed s,/_metadata,, "
        "| xargs -I CHK find CHK -type f ! -name _metadata -size +16k | grep --quiet .",
    ),
)
"""A complete checkpoint of this row has state in files: small state is in `_metadata`."""

ROWS = (
    Row(
        "checkpoint-folder-gone", (Line("test ! -e {flink}.gone && mv {flink} {flink}.gone"),),
        (Line("mkdir -p {flink} && cp -rp {flink}.gone/. {flink}/ && rm -rf {flink}.gone"),),
        needs=(Need.DISK,), seconds=10,
        promise=NOTHING,
        why="a running job does not read its checkpoints; it writes the next ones",
    ),
    Row(
        "checkpoint-folder-read-only", (Line("faultline/faults/small_disk.sh read-only {flink}"),),
        (Line("faultline/faults/small_disk.sh writable {flink}"),),
        prepares=CHECKPOINTS_ON_A_SMALL_DISK, undo=CHECKPOINTS_BACK,
        needs=(Need.DISK, Need.MOUNT), seconds=12,
        promise=NOTHING, why=_RETRIED,
    ),
    Row(
        "checkpoint-disk-full", (Line("faultline/faults/small_disk.sh fill {flink}"),),
        (Line("faultline/faults/small_disk.sh free {flink}"),),
        prepares=CHECKPOINTS_ON_A_SMALL_DISK, undo=CHECKPOINTS_BACK,
        needs=(Need.DISK, Need.MOUNT), seconds=12,
        promise=NOTHING, why=_RETRIED,
    ),
    Row(
        "newest-metadata-gone", (*_CANCEL.breaks, Line("mv {newest}/_metadata {newest}/_metadata.gone")),
        _LATEST, prepares=_WINDOWS_COMMITTED, needs=(Need.DISK,),
        judged=(Restored(), Cancelled(), RepeatsSinceCheckpoint()),
        promise="nothing is lost; `latest` is the checkpoint before, and repeats what came after it",
        why="a folder without `_metadata` is not a checkpoint",
    ),
    Row(
        "newest-checkpoint-gone", (*_CANCEL.breaks, Line("rm -r {newest}")),
        _LATEST, prepares=_WINDOWS_COMMITTED, needs=(Need.DISK,),
        judged=(Restored(), Cancelled(), RepeatsSinceCheckpoint()),
        promise="nothing is lost; `latest` is the checkpoint before, and repeats what came after it",
        why="each checkpoint is complete in its own folder",
    ),
    Row(
        "newest-checkpoint-cut-short",
        (*_CANCEL.breaks, Line("cp {newest}/_metadata {newest}/whole && truncate -s -100 {newest}/_metadata")),
        (
            Refused(Restore(NEWEST), "cut short or damaged"),
            Line("mv {newest}/whole {newest}/_metadata"),
            *_LATEST,
        ),
        needs=(Need.DISK,),
        judged=(Restored(), Cancelled()),
        promise="the damaged checkpoint is refused; whole again, it repeats nothing",
        why="the restore reads all of `_metadata` before it submits the job",
    ),
    Row(
        "state-file-gone",
        (
            *_LARGE_STATE, *_CANCEL.breaks,
            Line("mkdir {results}/state && find {newest} -type f ! -name _metadata -exec mv {} {results}/state \\;"),
        ),
        (
            Refused(Restore(NEWEST), "is missing: a restore would fail"),
            Line("cp {results}/state/* {newest}/"),
            *_LATEST,
        ),
        prepares=(Stop("generator"),), needs=(Need.DISK,), fills=True,
        judged=(Restored(), Cancelled()),
        promise="a checkpoint without its state file is refused; with it, nothing is lost or repeated",
        why=_FILES,
    ),
    Row(
        "state-file-cut-short",
        (
            *_LARGE_STATE, *_CANCEL.breaks,
            Line("mkdir {results}/state && find {newest} -type f ! -name _metadata -exec cp {} {results}/state \\;"),
            Line("find {newest} -type f ! -name _metadata -exec truncate -s -100 {} \\;"),
        ),
        (
            Refused(Restore(NEWEST), "a restore would fail"),
            Line("cp {results}/state/* {newest}/"),
            *_LATEST,
        ),
        prepares=(Stop("generator"),), needs=(Need.DISK,), fills=True,
        judged=(Restored(), Cancelled()),
        promise="a checkpoint with a state file that is cut short is refused; whole again, it repeats nothing",
        why=_FILES,
    ),
)  # fmt: skip
