"""The rows of the matrix, as data: what is broken and repaired, what is promised, and why that can be promised.

A row that expects duplicates passes only with the number that the checkpoint predicts.
"""

from __future__ import annotations

from faults.catalogue import catalogue
from faults.model import Repeats, Row, Step

_FAULT = catalogue()


def _broken(name: str) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The lines of a fault: what breaks, and what repairs."""
    return _FAULT[name].breaks, _FAULT[name].heals


_CANCEL = _FAULT["job-cancel"]
_TASKMANAGER = _FAULT["taskmanager-kill"]
_JOBMANAGER = _FAULT["jobmanager-kill"]
_BROKER = _FAULT["broker-kill"]
_SPARK = _FAULT["synchronizer-kill"]
_WINDOWS = "scripts/open_transactions.sh visit_windows --wait 60"
_LARGE = "--rate 4000"
_PARALLEL = (
    "scripts/exec.sh jobmanager env STACK_FLINK_PARALLELISM=2 python -m flink_job.submit --from "
    '"$(scripts/exec.sh jobmanager python -m inspector.flink resolve latest)"'
)

_ABORTED = "the windows of the open transaction are aborted, and written again from the checkpoint"
_SAME_RANGE = "the batch runs again with the range in its offsets file, and replaces what it had written"
_RETRIES = "producers are idempotent and retry; consumers go on at their offsets"

FLINK = (
    Row(
        "cancel-restore", _CANCEL.breaks, _CANCEL.heals, restores=True, cancels=True,
        promise="nothing is lost or repeated",
        why="the newest checkpoint has the offsets, the open windows and the clock; its transaction is committed",
    ),
    Row(
        "cancel-restore-older", _CANCEL.breaks, (Step("scripts/flink_restore.sh {oldest}"),), restores=True,
        cancels=True, repeats=Repeats.AFTER_CHECKPOINT,
        promise="nothing is lost; what later checkpoints had committed is repeated",
        why="committed records stay committed, and the older checkpoint does not know them",
    ),
    Row(
        "submit-without-checkpoint", _CANCEL.breaks, (Step("scripts/flink_submit.sh"),), cancels=True,
        repeats=Repeats.ALL,
        promise="nothing is lost; every window is repeated",
        why="without a checkpoint the job reads the topic from its earliest offset",
    ),
    Row(
        "taskmanager-kill", _TASKMANAGER.breaks, _TASKMANAGER.heals,
        promise="nothing is lost or repeated", why=_ABORTED,
    ),
    Row(
        "taskmanager-kill-in-transaction", _TASKMANAGER.breaks, _TASKMANAGER.heals, prepares=(Step(_WINDOWS),),
        in_transaction=True,
        promise="nothing is lost or repeated", why=_ABORTED,
    ),
    Row(
        "taskmanager-kill-large", _TASKMANAGER.breaks, _TASKMANAGER.heals, load=_LARGE, seconds=25,
        promise="nothing is lost or repeated, with 100,000 visits meanwhile", why=_ABORTED,
    ),
    Row(
        "taskmanager-freeze", *_broken("taskmanager-freeze"), seconds=15,
        promise="nothing is lost or repeated",
        why="the job has restarted elsewhere or waits; the frozen one's producers are fenced off when it resumes",
    ),
    Row(
        "taskmanager-freeze-short", *_broken("taskmanager-freeze"), seconds=1,
        promise="nothing is lost or repeated", why="a pause shorter than the heartbeat's timeout is no failure",
    ),
    Row(
        "taskmanager-stop", (Step("scripts/stop.sh taskmanager"),), (Step("scripts/start.sh taskmanager"),),
        promise="nothing is lost or repeated",
        why="a clean stop makes no savepoint: the job restarts from its checkpoint",
    ),
    Row(
        "jobmanager-freeze", (Step("scripts/pause.sh jobmanager"),), (Step("scripts/resume.sh jobmanager"),),
        seconds=10,
        promise="nothing is lost or repeated",
        why="the tasks wait for a checkpoint, or the job restarts when both sides have missed the other's heartbeats",
    ),
    Row(
        "jobmanager-stop",
        (Step("scripts/stop.sh jobmanager"),), _JOBMANAGER.heals, restores=True,
        promise="nothing is lost or repeated once the job is restored",
        why="a JobManager that stops keeps the externalized checkpoints",
    ),
    Row(
        "checkpoint-folder-gone", (Step("test ! -e {flink}.gone && mv {flink} {flink}.gone"),),
        (Step("mkdir -p {flink} && cp -rp {flink}.gone/. {flink}/ && rm -rf {flink}.gone"),), seconds=10,
        promise="nothing is lost or repeated",
        why="a running job does not read its checkpoints; it writes the next ones",
    ),
    Row(
        "at-least-once-kill", _TASKMANAGER.breaks, _TASKMANAGER.heals, repeats=Repeats.AFTER_CHECKPOINT,
        prepares=(
            *_CANCEL.breaks, Step("scripts/flink_restore.sh latest --mode at-least-once"),
            Step("scripts/flink_status.sh --wait-checkpoints 3 --wait-seconds 120"),
            # A window that is read now was most likely written after the newest checkpoint.
            Step("scripts/window_latency.sh --ends 1 --uncommitted"),
        ),
        promise="nothing is lost; windows written since the checkpoint are repeated",
        why="without transactions what was written stays",
    ),
    Row(
        "jobmanager-kill", _JOBMANAGER.breaks, _JOBMANAGER.heals, restores=True,
        promise="nothing is lost or repeated once the job is restored",
        why="externalized checkpoints outlive the JobManager",
    ),
    Row(
        "newest-checkpoint-gone", (*_CANCEL.breaks, Step("mv {newest}/_metadata {newest}/_metadata.gone")),
        (Step("scripts/flink_restore.sh latest"),), restores=True, cancels=True, repeats=Repeats.AFTER_CHECKPOINT,
        # Right after a commit that had windows.
        prepares=(Step("scripts/window_latency.sh --ends 1"),),
        promise="nothing is lost; `latest` is the checkpoint before, and repeats what came after it",
        why="a folder without `_metadata` is not a checkpoint",
    ),
    Row(
        "newest-checkpoint-cut-short",
        (*_CANCEL.breaks, Step("cp {newest}/_metadata {newest}/whole && truncate --size=-100 {newest}/_metadata")),
        (
            Step("scripts/flink_restore.sh {newest}", refused="cut short or damaged"),
            Step("mv {newest}/whole {newest}/_metadata"),
            Step("scripts/flink_restore.sh latest"),
        ),
        restores=True, cancels=True,
        promise="the damaged checkpoint is refused; whole again, it repeats nothing",
        why="Flink reads all of `_metadata` before it starts the job",
    ),
    Row(
        "parallelism-2", _CANCEL.breaks, (Step(_PARALLEL),), restores=True, cancels=True, parallelism=2,
        undo=(*_CANCEL.breaks, Step("scripts/flink_restore.sh latest")),
        promise="nothing is lost or repeated",
        why="state belongs to key groups and partitions, not to tasks",
    ),
    Row(
        "two-jobs-refused", (Step("scripts/flink_submit.sh", refused="would share its transactional ids"),), (),
        promise="the second job is refused", why="two jobs with one transactional id prefix fence each other off",
    ),
)  # fmt: skip

KAFKA = (
    Row(
        "broker-kill", _BROKER.breaks, _BROKER.heals,
        promise="nothing is lost or repeated", why=_RETRIES,
    ),
    Row(
        "broker-bounce", *_broken("broker-bounce"),
        promise="nothing is lost or repeated", why=_RETRIES,
    ),
    Row(
        "broker-freeze", *_broken("broker-freeze"), seconds=10,
        promise="nothing is lost or repeated", why=_RETRIES,
    ),
    Row(
        "broker-kill-in-transaction", _BROKER.breaks, _BROKER.heals, prepares=(Step(_WINDOWS),), in_transaction=True,
        promise="nothing is lost or repeated",
        why="the broker's log has the transaction's state, and the producer goes on or the job restarts",
    ),
    Row(
        "broker-kill-large", _BROKER.breaks, _BROKER.heals, load=_LARGE, seconds=10,
        promise="nothing is lost or repeated, under load", why=_RETRIES,
    ),
)  # fmt: skip

SPARK = (
    Row(
        "synchronizer-kill", _SPARK.breaks, _SPARK.heals,
        promise="nothing is lost or repeated", why=_SAME_RANGE,
    ),
    Row(
        "synchronizer-kill-large", _SPARK.breaks, _SPARK.heals, load=_LARGE, seconds=20,
        promise="nothing is lost or repeated, with 100,000 visits meanwhile", why=_SAME_RANGE,
    ),
    Row(
        "synchronizer-kill-before-commit", _SPARK.breaks, _SPARK.heals, plans=True,
        prepares=(
            Step("scripts/spark_stop.sh"), Step("scripts/spark_start.sh --hold-batch next"),
            Step("timeout 180 bash -c 'until test -s {spark}.held; do sleep 0.2; done'"),
        ),
        promise="nothing is lost or repeated", why=_SAME_RANGE,
    ),
    Row(
        "synchronizer-freeze", *_broken("synchronizer-freeze"), seconds=12,
        promise="nothing is lost or repeated", why="nobody else writes: the query goes on where it stood still",
    ),
    Row(
        "synchronizer-stop", (Step("scripts/spark_stop.sh"),), _SPARK.heals,
        promise="nothing is lost or repeated", why="SIGTERM ends the query after its batch",
    ),
    Row(
        "two-drivers-refused",
        (Step("scripts/exec.sh spark python -m spark_job.visits_json_synchronizer", refused="is in use"),), (),
        promise="the second driver is refused", why="both would write the same batches; the checkpoint is locked",
    ),
    Row(
        "commit-deleted",
        (Step("scripts/spark_stop.sh"), Step('rm "$(ls -d {spark}/commits/[0-9]* | sort -V | tail -n 1)"')),
        _SPARK.heals,
        promise="nothing is lost or repeated",
        why="the batch runs again, and the file sink's log already has its number",
    ),
)  # fmt: skip

SOURCE = (
    Row(
        "generator-freeze", (Step("scripts/pause.sh generator"),), (Step("scripts/resume.sh generator"),), seconds=20,
        promise="nothing is lost or repeated", why="no visits are no failure: windows wait for event time",
    ),
    Row(
        "generator-kill", *_broken("generator-kill"),
        promise="every acknowledged visit is there once; one that was sent and not acknowledged, at most once",
        why="the ledger has each visit before it is sent, and again when it is acknowledged",
    ),
    Row(
        "hostile-visits", _TASKMANAGER.breaks, _TASKMANAGER.heals, sets_aside=True,
        load="--late-percent 3 --duplicated-percent 3 --unparsable-percent 3",
        promise="late and unparsable visits are routed once each, and none is lost",
        why="what is late follows from the topic alone: the clocks are in the checkpoint",
    ),
)  # fmt: skip

TWO_AT_ONCE = (
    Row(
        "broker-bounce-while-the-job-restarts", (*_TASKMANAGER.breaks, Step("scripts/stop.sh kafka")),
        (Step("scripts/start.sh taskmanager"), Step("scripts/start.sh kafka", after=3)),
        promise="nothing is lost or repeated", why="each recovers from what is on disk",
    ),
    Row(
        "synchronizer-kill-while-the-broker-is-frozen", (Step("scripts/pause.sh kafka"), *_SPARK.breaks),
        (Step("scripts/resume.sh kafka"), *_SPARK.heals),
        promise="nothing is lost or repeated", why=_SAME_RANGE,
    ),
)  # fmt: skip

ALL = (
    Row(
        "power-cut",
        tuple(Step(f"scripts/kill.sh {name}") for name in ("kafka", "jobmanager", "taskmanager", "spark", "generator")),
        (
            *(Step(f"scripts/start.sh {name}") for name in ("kafka", "jobmanager", "taskmanager")),
            Step("scripts/flink_restore.sh latest"), Step("scripts/spark_start.sh"), Step("scripts/generator_start.sh"),
        ),
        restores=True,
        promise="nothing acknowledged is lost, nothing is repeated",
        why="everything that was promised is in files: the topics, the checkpoints, the outputs",
    ),
    Row(
        "down-and-up", (Step("scripts/down.sh"),), (Step("scripts/up.sh"),), restores=True, seconds=1,
        promise="nothing is lost or repeated", why="up restores the job from its newest retained checkpoint",
    ),
)  # fmt: skip

ROWS = {row.name: row for row in (*FLINK, *KAFKA, *SPARK, *SOURCE, *TWO_AT_ONCE, *ALL)}
