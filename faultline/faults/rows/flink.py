"""The job, the JobManager and the TaskManager."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.moments import BetweenPhases, InTransaction
from faultline.faults.judges.offsets import Cancelled, Rescaled, Restarted, Restored
from faultline.faults.judges.windows import LosesOpen, LosesPrepared, RepeatsAll, RepeatsSinceCheckpoint
from faultline.faults.model import Row
from faultline.faults.rows.lines import (
    ABORTED,
    CHECKPOINT_BEGUN,
    FIRST_CHECKPOINT,
    LARGE,
    NOTHING,
    WINDOWS_WRITTEN,
    broken,
)
from faultline.faults.steps import (
    LEADING,
    OLDEST,
    WORKING,
    Inside,
    Kill,
    Later,
    Line,
    Pause,
    Probe,
    Refused,
    Restore,
    Resume,
    Start,
    Stop,
    Submit,
    SubmitChanged,
    Tolerated,
    job_status,
)
from faultline.formats.jobs import AT_LEAST_ONCE

_CANCEL = CATALOGUE["job-cancel"]
_TASKMANAGER = CATALOGUE["taskmanager-kill"]
_JOBMANAGER = CATALOGUE["jobmanager-kill"]

_PREPARED = (
    WINDOWS_WRITTEN,
    Pause("taskmanager"),
    CHECKPOINT_BEGUN,
    Pause("jobmanager"),
    # It prepares its transactions, and answers a JobManager that stands still.
    Resume("taskmanager"),
    Later(1, Line("touch {results}/moment")),
)
_COMMIT_CUT_OFF = (
    # Killed, not frozen: a frozen broker would find the request to commit in its socket when it resumes.
    Kill("kafka"),
    # It completes the checkpoint; the TaskManager cannot commit what it has prepared.
    Resume("jobmanager"),
    # It may never be complete.
    Tolerated(job_status("--wait-seconds 10 --wait-checkpoints {one_more}")),
    *_TASKMANAGER.breaks,
)

ROWS = (
    Row(
        "cancel-restore", _CANCEL.breaks, _CANCEL.heals,
        judged=(Restored(), Cancelled()),
        promise=NOTHING,
        why="the newest checkpoint has the offsets, the open windows and the clock; its transaction is committed",
    ),
    Row(
        "cancel-restore-older", _CANCEL.breaks, (Restore(OLDEST),),
        judged=(Restored("oldest"), Cancelled(), RepeatsSinceCheckpoint()),
        promise="nothing is lost; what later checkpoints had committed is repeated",
        why="committed records stay committed, and the older checkpoint does not know them",
    ),
    Row(
        "cancel-restore-older-fewer-tasks", _CANCEL.breaks, (Restore(OLDEST, settings=(("FLINK_PARALLELISM", "1"),)),),
        settings=(("FLINK_PARALLELISM", "3"),),
        judged=(Restored("oldest"), Cancelled(), RepeatsSinceCheckpoint()),
        promise="nothing is lost; what later checkpoints had committed is repeated; no transaction is left open",
        why="the one task that is left looks for the open transactions of all tasks by their prefix",
    ),
    Row(
        "epochs-used-up",
        (
            *_CANCEL.breaks,
            Inside("generator", "python -m faultline.faults.use_up_epochs visit_windows-visit_windows"),
        ),
        (Refused(Restore(), "not currently assigned to its transactional id"), Submit()),
        # Windows end every 10 s, so each checkpoint has a transaction.
        settings=(("FLINK_CHECKPOINT_INTERVAL_MS", "15000"),),
        prepares=(job_status("--wait-checkpoints 3 --wait-seconds 120"),),
        judged=(Cancelled(), RepeatsAll()),
        promise="the checkpoint is refused, though its transaction is committed; without it every window is repeated",
        why="a transactional id has 32,767 epochs, and then another producer id, which the connector takes for a loss "
        "(FLINK-40689)",
    ),
    Row(
        "submit-without-checkpoint", _CANCEL.breaks, (Submit(),),
        judged=(Cancelled(), RepeatsAll()),
        promise="nothing is lost; every window is repeated",
        why="without a checkpoint the job reads the topic from its earliest offset",
    ),
    Row(
        "taskmanager-kill", _TASKMANAGER.breaks, _TASKMANAGER.heals,
        promise=NOTHING, why=ABORTED,
    ),
    Row(
        "taskmanager-kill-in-transaction", _TASKMANAGER.breaks, _TASKMANAGER.heals, prepares=(WINDOWS_WRITTEN,),
        judged=(InTransaction(),),
        promise=NOTHING, why=ABORTED,
    ),
    Row(
        "taskmanager-kill-during-checkpoint", (Pause("taskmanager"), CHECKPOINT_BEGUN,
        *_TASKMANAGER.breaks), _TASKMANAGER.heals,
        promise=NOTHING, why="a checkpoint that is not complete does not count",
    ),
    Row(
        "taskmanager-kill-between-phases", _COMMIT_CUT_OFF,
        (Start("kafka"), *_TASKMANAGER.heals),
        prepares=_PREPARED, seconds=1,
        judged=(InTransaction(), BetweenPhases()),
        promise=NOTHING, why="the checkpoint has the prepared transaction, and the restarted job commits it",
    ),
    Row(
        "outage-longer-than-the-transaction-timeout", (*_COMMIT_CUT_OFF, Start("kafka")),
        _TASKMANAGER.heals, prepares=_PREPARED, seconds=32,
        settings=(("FLINK_TRANSACTION_TIMEOUT_MS", "15000"),),
        judged=(InTransaction(), BetweenPhases(), LosesPrepared()),
        promise="the windows of the prepared transaction are lost",
        why="the broker aborts it after 15 s, set for this row; this is why the timeout in .env is a week",
    ),
    Row(
        "taskmanager-kill-large", _TASKMANAGER.breaks, _TASKMANAGER.heals, load=LARGE, fills=True, seconds=25,
        promise="nothing is lost or repeated, with 100,000 visits meanwhile", why=ABORTED,
    ),
    Row(
        "taskmanager-freeze", *broken("taskmanager-freeze"), seconds=15,
        judged=(Restarted(),),
        promise=NOTHING,
        why="the only TaskManager is declared dead; the job waits for it, and restarts from its checkpoint",
    ),
    Row(
        "working-taskmanager-freeze", (Pause(WORKING),), (Resume(WORKING),),
        settings=(("FLINK_TASKMANAGERS", "2"),), seconds=25,
        judged=(Restarted(),),
        promise=NOTHING,
        why="the job restarts on the other TaskManager; when the frozen one resumes, its producers are fenced off",
    ),
    Row(
        "taskmanager-freeze-short", *broken("taskmanager-freeze"), seconds=1,
        judged=(Restarted(False),),
        promise=NOTHING, why="a pause shorter than the heartbeat's timeout is no failure",
    ),
    Row(
        "taskmanager-stop", (Stop("taskmanager"),), (Start("taskmanager"),),
        promise=NOTHING,
        why="a clean stop makes no savepoint: the job restarts from its checkpoint",
    ),
    Row(
        "jobmanager-kill", _JOBMANAGER.breaks, _JOBMANAGER.heals,
        judged=(Restored(),),
        promise="nothing is lost or repeated once the job is restored",
        why="externalized checkpoints outlive the JobManager",
    ),
    Row(
        "leading-jobmanager-kill", (Kill(LEADING),), (Start(LEADING),),
        settings=(("FLINK_JOBMANAGERS", "2"),), seconds=20,
        judged=(Restarted(),),
        promise="nothing is lost or repeated, and nobody restores the job",
        why="ZooKeeper elects the standby, which finds the job and its newest checkpoint there",
    ),
    Row(
        "jobmanager-freeze", *broken("jobmanager-freeze"), seconds=10,
        promise=NOTHING,
        why="the tasks wait for a checkpoint, or the job restarts when both sides have missed the other's heartbeats",
    ),
    Row(
        "jobmanager-stop",
        (Stop("jobmanager"),), _JOBMANAGER.heals,
        judged=(Restored(),),
        promise="nothing is lost or repeated once the job is restored",
        why="a JobManager that stops keeps the externalized checkpoints",
    ),
    Row(
        "at-least-once-kill", _TASKMANAGER.breaks, _TASKMANAGER.heals,
        # Once: a job that is cancelled in this mode repeats windows, too.
        installs=(FIRST_CHECKPOINT, *_CANCEL.breaks, Restore(mode=AT_LEAST_ONCE)),
        # A window that is read now was most likely written after the newest checkpoint.
        prepares=(Probe("faultline.probes.window_latency", "--ends 1 --uncommitted"),),
        judged=(RepeatsSinceCheckpoint(),),
        promise="nothing is lost; windows written since the checkpoint are repeated",
        why="without transactions what was written stays",
    ),
    Row(
        "parallelism-2", _CANCEL.breaks, (Restore(settings=(("FLINK_PARALLELISM", "2"),)),),
        undo=(*_CANCEL.breaks, Restore()),
        judged=(Restored(), Cancelled(), Rescaled(2)),
        promise=NOTHING,
        why="state belongs to key groups and partitions, not to tasks",
    ),
    Row(
        "changed-uid-refused", _CANCEL.breaks,
        (
            Refused(SubmitChanged("other-uid"), "Cannot map checkpoint/savepoint state"),
            *_CANCEL.heals,
        ),
        judged=(Restored(), Cancelled()),
        promise="the job whose operator has another uid is refused; the unchanged one repeats nothing",
        why="Flink refuses a checkpoint with state of an operator that the job does not have",
    ),
    Row(
        "changed-uid-allowed", _CANCEL.breaks, (SubmitChanged("other-uid-allowed"),),
        judged=(Restored(), Cancelled(), LosesOpen()),
        promise="with --allowNonRestoredState the open windows of the checkpoint are lost",
        why="their state is under the old uid, and the offsets are behind their visits",
    ),
    Row(
        "two-jobs-refused", (Refused(Submit(), "would share its transactional ids"),), (),
        promise="the second job is refused", why="two jobs with one transactional id prefix fence each other off",
    ),
)  # fmt: skip
