"""Rows about promises that only a cluster can keep; all of these rows share one stack of the profile `cluster`."""

from __future__ import annotations

from dataclasses import replace

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.cluster import GoesOn, NoCheckpoint, StaleLeader, StandsStill
from faultline.faults.judges.moments import BatchPlanned, InCommit, SlowBatch
from faultline.faults.judges.offsets import Restarted
from faultline.faults.judges.windows import StaysOnTime
from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import BATCH_HELD, BATCH_WRITING, CHECKPOINT_BEGUN, NOTHING, SAME_RANGE, broken
from faultline.faults.steps import LEADING, WORKING, Inside, Kill, Later, Line, Pause, Resume, Start

_SPARK = CATALOGUE["synchronizer-kill"]
_STORE = CATALOGUE["store-kill"]
_FREEZE = broken("store-freeze")
_TURNS = tuple(step for _ in range(6) for step in (Later(0.5, Pause("store")), Later(2, Resume("store"))))
"""About 15 s in which the object store answers now and then."""

_ROWS = (
    Row(
        "one-broker-of-three-gone", (Kill("kafka-2"),), (Start("kafka-2"),),
        seconds=45,
        judged=(GoesOn(), StaysOnTime()),
        promise="both engines go on by themselves; nothing is lost or repeated",
        why="two brokers are a majority and have each record; they elect new leaders",
    ),
    Row(
        "two-brokers-of-three-gone", (Kill("kafka-2"), Kill("kafka-3")),
        (Start("kafka-2"), Start("kafka-3")),
        # The one that is left leads, and could take them.
        prepares=(Inside("generator", "python -m faultline.services.kafka.lead kafka"),), seconds=20,
        judged=(StandsStill(),),
        promise="writes stop until a second broker is back; nothing is lost or repeated",
        why="one broker is no majority, and a record that one broker has is not acknowledged (min.insync.replicas=2)",
    ),
    Row(
        "leading-jobmanager-of-the-cluster-kill", (Kill(LEADING),),
        (Start(LEADING),),
        seconds=20,
        judged=(Restarted(), GoesOn()),
        promise="the other one leads and commits windows, and nobody types anything",
        why="ZooKeeper elects it, and it finds the job there and its newest checkpoint in the object store",
    ),
    Row(
        "taskmanager-and-spark-worker-gone", (Kill(WORKING), Kill("spark-worker")),
        (Start(WORKING), Start("spark-worker")),
        seconds=30,
        judged=(Restarted(), GoesOn()),
        promise="both engines go on with those that are left; nothing is lost or repeated",
        why="the other TaskManager has slots for all tasks, and the other worker has an executor",
    ),
    Row(
        "driver-kill-before-commit", _SPARK.breaks, _SPARK.heals, prepares=BATCH_HELD,
        judged=(BatchPlanned(),),
        promise=NOTHING, why=SAME_RANGE,
    ),
    Row(
        "store-kill", _STORE.breaks, _STORE.heals, seconds=12,
        judged=(NoCheckpoint(),),
        promise=NOTHING,
        why="a checkpoint or a batch that cannot be written is not complete, and what was acknowledged is on the disk",
    ),
    Row(
        "store-freeze", *_FREEZE, seconds=12,
        judged=(NoCheckpoint(),),
        promise=NOTHING, why="checkpoints and batches wait, or fail and are tried again",
    ),
    Row(
        "store-slow", (*_TURNS, Later(0.5, Pause("store"))), _FREEZE[1], seconds=2,
        judged=(SlowBatch(),),
        promise="nothing is lost or repeated; batches take longer",
        why="for about 15 s it stands still for 2 s at a time, and whoever writes waits for each answer",
    ),
    Row(
        "store-kill-during-checkpoint",
        (
            Pause(WORKING), CHECKPOINT_BEGUN, *_STORE.breaks,
            Resume(WORKING),
        ),
        _STORE.heals, seconds=10,
        judged=(NoCheckpoint(),),
        promise=NOTHING, why="a checkpoint that cannot be written does not count, and the next one covers its visits",
    ),
    Row(
        "store-kill-during-commit",
        # One executor writes its file and the other cannot: the batch is sure to be open when the store goes.
        (
            Pause("spark-worker-2"), BATCH_WRITING, *_STORE.breaks,
            Resume("spark-worker-2"),
        ),
        _STORE.heals, seconds=10,
        judged=(InCommit(), NoCheckpoint()),
        promise=NOTHING,
        why="files that the sink's log does not list do not count; the batch waits for the store, or is written again",
    ),
    Row(
        "leading-broker-cut-off", (Line("faultline/faults/cut_off.sh cut {inner_ports}"),),
        (Line("faultline/faults/cut_off.sh join {inner_ports}"),),
        prepares=(Inside("generator", "python -m faultline.services.kafka.lead {controlling}"),),
        needs=(Need.CUT_OFF,), seconds=30,
        judged=(StaleLeader(),),
        promise="nothing that was acknowledged is lost, and nothing is repeated",
        why="a leader that reaches no other broker acknowledges nothing (min.insync.replicas=2)",
    ),
)  # fmt: skip

ROWS = tuple(replace(row, settings=(("PROFILE", "cluster"),)) for row in _ROWS)
