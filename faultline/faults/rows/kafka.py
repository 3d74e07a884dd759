"""The broker, and its topics."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.moments import InTransaction
from faultline.faults.judges.readers import BlocksReaders
from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import (
    CHECKPOINT_BEGUN,
    FIRST_CHECKPOINT,
    LARGE,
    NOTHING,
    RETRIES,
    WINDOWS_WRITTEN,
    broken,
    left_open,
)
from faultline.faults.steps import Inside, Kill, Later, Line, Pause, Restore, Start, Stop, Tolerated

_BROKER = CATALOGUE["broker-kill"]
_CANCEL = CATALOGUE["job-cancel"]


def _topics(flags: str) -> Inside:
    return Inside("kafka", f"kafka-topics.sh --bootstrap-server {{bootstrap}} {flags}")


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
        "broker-kill-during-checkpoint", (Pause("kafka"), CHECKPOINT_BEGUN, *_BROKER.breaks),
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
        "broker-freeze-during-checkpoint", (Pause("kafka"), CHECKPOINT_BEGUN),
        broken("broker-freeze")[1], seconds=10,
        promise=NOTHING, why="a checkpoint waits for its transactions to be prepared; one that takes too long fails",
    ),
    Row(
        "broker-kill-large", _BROKER.breaks, _BROKER.heals, load=LARGE, fills=True, seconds=10,
        promise="nothing is lost or repeated, under load", why=RETRIES,
    ),
    Row(
        "broker-disk-full", (Line("faultline/faults/small_disk.sh fill {broker}"),),
        (
            Line("faultline/faults/small_disk.sh free {broker}"),
            Tolerated(Kill("kafka")),
            Start("kafka"),
        ),
        prepares=(
            Stop("kafka"), Line("faultline/faults/small_disk.sh mount {broker} 64"),
            Start("kafka"), FIRST_CHECKPOINT,
        ),
        undo=(
            Stop("kafka"), Line("faultline/faults/small_disk.sh unmount {broker}"),
            Start("kafka"),
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
            _topics("--alter --topic visits --partitions 3"),
            Stop("generator"), Start("generator"),
        ),
        (*_CANCEL.breaks, Restore(settings=(("TOPIC_PARTITIONS", "3"),))),
        stains=True,
        promise="nothing is lost or repeated once the job is restored with TOPIC_PARTITIONS=3",
        why="the restored job finds the new partition and begins at its first visit, and so does the synchronizer",
    ),
    Row(
        "topic-recreated",
        (
            Stop("generator"),
            _topics("--delete --topic visits"),
            # The broker deletes a topic after it has answered.
            Later(2, _topics("--create --topic visits --partitions 2 --replication-factor 1")),
            Start("generator"),
        ),
        (),
        stains=True, unsettled="it is not the topic that was read",
        promise="no verdict holds, and settle says why",
        why="offsets of the old topic mean nothing in the new one; only a clean start helps",
    ),
)  # fmt: skip
