"""The synchronizer, its checkpoint and its output."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.batches import RepeatsBatch
from faultline.faults.judges.moments import BatchPlanned, InCommit
from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import BATCH_HELD, BATCH_WRITING, LARGE, NOTHING, SAME_RANGE, broken
from faultline.faults.steps import Inside, Line, Refused, Stop

_SPARK = CATALOGUE["synchronizer-kill"]
_STOP = Stop("spark")

ROWS = (
    Row(
        "synchronizer-kill", _SPARK.breaks, _SPARK.heals,
        promise=NOTHING, why=SAME_RANGE,
    ),
    Row(
        "synchronizer-kill-large", _SPARK.breaks, _SPARK.heals, load=LARGE, fills=True, seconds=20,
        promise="nothing is lost or repeated, with 100,000 visits meanwhile", why=SAME_RANGE,
    ),
    Row(
        "synchronizer-kill-before-commit", _SPARK.breaks, _SPARK.heals, prepares=BATCH_HELD,
        judged=(BatchPlanned(),),
        promise=NOTHING, why=SAME_RANGE,
    ),
    Row(
        "synchronizer-kill-in-write", (BATCH_WRITING, *_SPARK.breaks), _SPARK.heals, load=LARGE, fills=True,
        judged=(BatchPlanned(), InCommit()),
        promise=NOTHING, why="files that the sink's log does not list do not count, and the batch is written again",
    ),
    Row(
        "sink-foreach-overwrite", _SPARK.breaks, _SPARK.heals, prepares=BATCH_HELD,
        settings=(("SPARK_SINK", "foreach-overwrite"),),
        judged=(BatchPlanned(),),
        promise=NOTHING, why="killed between write and commit: the batch runs again, and replaces its own folder",
    ),
    Row(
        "sink-foreach-append", _SPARK.breaks, _SPARK.heals, prepares=BATCH_HELD,
        settings=(("SPARK_SINK", "foreach-append"),),
        judged=(BatchPlanned(), RepeatsBatch()),
        promise="nothing is lost; the batch that was planned is written twice",
        why="killed between write and commit: a naive sink appends the batch again",
    ),
    Row(
        "synchronizer-freeze", *broken("synchronizer-freeze"), seconds=12,
        promise=NOTHING, why="nobody else writes: the query goes on where it stood still",
    ),
    Row(
        "synchronizer-stop", (_STOP,), _SPARK.heals,
        promise=NOTHING, why="SIGTERM ends the query after its batch",
    ),
    Row(
        "two-drivers-refused",
        (Refused(Inside("spark", "python -m spark_job.visits_json_synchronizer"), "is in use"),), (),
        promise="the second driver is refused", why="both would write the same batches; the checkpoint is locked",
    ),
    Row(
        "commit-deleted",
        (_STOP, Line("rm {newest_commit}")),
        _SPARK.heals, needs=(Need.DISK,),
        promise=NOTHING,
        why="the batch runs again, and the file sink's log already has its number",
    ),
    Row(
        "output-folder-gone", (Line("test ! -e {output}.gone && mv {output} {output}.gone"),),
        (
            _STOP, Line("mkdir -p {output} && cp -rp {output}.gone/. {output}/ && rm -rf {output}.gone"),
            *_SPARK.heals,
        ),
        needs=(Need.DISK,), seconds=12,
        promise="nothing is lost or repeated once the folder is back",
        why="each batch has its own files, and its own entry in the sink's log",
    ),
    Row(
        "output-disk-full", (Line("faultline/faults/small_disk.sh fill {output}"),),
        (Line("faultline/faults/small_disk.sh free {output}"), *_SPARK.heals),
        prepares=(_STOP, Line("faultline/faults/small_disk.sh mount {output} 64"), *_SPARK.heals),
        undo=(_STOP, Line("faultline/faults/small_disk.sh unmount {output}"), *_SPARK.heals),
        needs=(Need.DISK, Need.MOUNT), seconds=15, load="--rate 400", fills=True,
        promise=NOTHING, why=SAME_RANGE,
    ),
)  # fmt: skip
