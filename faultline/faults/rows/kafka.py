"""The broker, and its topics."""

from __future__ import annotations

from faultline.faults.judges.moments import InTransaction
from faultline.faults.judges.readers import BlocksReaders
from faultline.faults.model import Need, Row, Step
from faultline.faults.rows.lines import (
    CHECKPOINT_BEGUN,
    FAULT,
    LARGE,
    NOTHING,
    RETRIES,
    WINDOWS_WRITTEN,
    broken,
    left_open,
)

_BROKER = FAULT["broker-kill"]
_CANCEL = FAULT["job-cancel"]
ROWS = (
    Row(
        "broker-kill", _BROKER.breaks, _BROKER.heals,
        promise=NOTHING, why=RETRIES,
    ),
    Row(
        "broker-bounce", *broken("broker-bounce"),
        promise=NOTHING, why=RETRIES,
    ),
    Row(
        "broker-freeze", *broken("broker-freeze"), seconds=10,
        promise=NOTHING, why=RETRIES,
    ),
    Row(
        "broker-kill-in-transaction", _BROKER.breaks, _BROKER.heals, prepares=(WINDOWS_WRITTEN,),
        judged=(InTransaction(),),
        promise=NOTHING,
        why="the broker's log has the transaction's state, and the producer goes on or the job restarts",
    ),
    Row(
        "broker-kill-during-checkpoint", (Step("scripts/pause.sh kafka"), CHECKPOINT_BEGUN, *_BROKER.breaks),
        _BROKER.heals,
        promise=NOTHING, why="a checkpoint whose transactions could not be prepared is not complete",
    ),
    Row(
        "broker-bounce-in-transaction", *broken("broker-bounce"), prepares=(WINDOWS_WRITTEN,),
        judged=(InTransaction(),),
        promise=NOTHING,
        why="the broker's log has the transaction's state, and the producer goes on or the job restarts",
    ),
    Row(
        "broker-freeze-in-transaction", *broken("broker-freeze"), prepares=(WINDOWS_WRITTEN,),
        seconds=10,
        judged=(InTransaction(),),
        promise=NOTHING, why=RETRIES,
    ),
    Row(
        "broker-freeze-during-checkpoint", (Step("scripts/pause.sh kafka"), CHECKPOINT_BEGUN),
        broken("broker-freeze")[1], seconds=10,
        promise=NOTHING, why="a checkpoint waits for its transactions to be prepared; one that takes too long fails",
    ),
    Row(
        "broker-kill-large", _BROKER.breaks, _BROKER.heals, load=LARGE, seconds=10,
        promise="nothing is lost or repeated, under load", why=RETRIES,
    ),
    Row(
        "broker-disk-full", (Step("faultline/faults/small_disk.sh fill {broker}"),),
        (
            Step("faultline/faults/small_disk.sh free {broker}"),
            Step("scripts/kill.sh kafka || true"),
            Step("scripts/start.sh kafka"),
        ),
        prepares=(
            Step("scripts/stop.sh kafka"), Step("faultline/faults/small_disk.sh mount {broker} 64"),
            Step("scripts/start.sh kafka"), Step("scripts/flink_status.sh --wait-checkpoints 1 --wait-seconds 120"),
        ),
        undo=(
            Step("scripts/stop.sh kafka"), Step("faultline/faults/small_disk.sh unmount {broker}"),
            Step("scripts/start.sh kafka"),
        ),
        needs=(Need.MOUNT,), seconds=10,
        promise=NOTHING, why="a broker that cannot write acknowledges nothing, and stops",
    ),
    Row(
        "foreign-transaction-left-open", (left_open("visit_windows", 15_000),), (), seconds=20,
        judged=(BlocksReaders(),),
        promise="nothing is lost or repeated; readers of committed windows wait",
        why="the broker aborts it after its own timeout, and the last stable offset moves on",
    ),
    Row(
        "partitions-added",
        (
            Step("scripts/exec.sh kafka kafka-topics.sh --bootstrap-server {bootstrap} --alter --topic visits "
                 "--partitions 3"),
            Step("scripts/generator_stop.sh"), Step("scripts/generator_start.sh"),
        ),
        (*_CANCEL.breaks, Step("STACK_TOPIC_PARTITIONS=3 scripts/flink_restore.sh latest")),
        stains=True,
        promise="nothing is lost or repeated once the job is restored with TOPIC_PARTITIONS=3",
        why="the restored job finds the new partition and begins at its first visit, and so does the synchronizer",
    ),
    Row(
        "topic-recreated",
        (
            Step("scripts/generator_stop.sh"),
            Step("scripts/exec.sh kafka kafka-topics.sh --bootstrap-server {bootstrap} --delete --topic visits"),
            Step("scripts/exec.sh kafka kafka-topics.sh --bootstrap-server {bootstrap} --create --topic visits "
                 "--partitions 2 --replication-factor 1", after=2),
            Step("scripts/generator_start.sh"),
        ),
        (),
        stains=True, unsettled="it is not the topic that was read",
        promise="no verdict holds, and settle says why",
        why="offsets of the old topic mean nothing in the new one; only a clean start helps",
    ),
)  # fmt: skip
