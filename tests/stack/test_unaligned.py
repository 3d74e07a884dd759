"""Unaligned checkpoints: they hold records, a restore with as many tasks loses none, and another number is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from faultline.formats.checkpoint import Checkpoint
from faultline.settings import Settings
from faultline.verdict.cluster import Cluster
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

SLOW = ("--program", "benchmarks/jobs/slow_step.py")
OVERTAKEN = "of records that barriers overtook"
TRAFFIC = ("--rate", "600", "--total", "20000")
"""More visits a second than the slow step takes, and no more than it can take at last."""


def holds_records(stack: RunningStack, checkpoint: Checkpoint) -> bool:
    return OVERTAKEN in "\n".join(stack.inspected(checkpoint.path, "--no-lag")["notes"])


def wait_for_overtaken(stack: RunningStack) -> None:
    """Wait until a checkpoint holds records."""

    def there() -> bool:
        stack.wait_for_checkpoints(1)
        return holds_records(stack, stack.newest_checkpoint())

    wait_until(there, "a checkpoint with records that barriers overtook", seconds=300)


def commit_the_end(stack: RunningStack) -> None:
    """Commit the ends of `visits` for the job, as its source does when the last visits are all in flight."""
    settings = Settings(stack.environment)
    topic = settings.text("VISITS_TOPIC")
    ends = Cluster(settings.bootstrap).spans(topic, committed=True)
    consumer = Consumer({"bootstrap.servers": settings.bootstrap, "group.id": settings.text("FLINK_GROUP_ID")})
    offsets = [TopicPartition(topic, partition, span.end) for partition, span in ends.items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def test_a_checkpoint_with_records_in_flight_is_restored_whole(tmp_path: Path) -> None:
    settings = {"FLINK_UNALIGNED": "true", "FLINK_PARALLELISM": "2", "FLINK_CHECKPOINTS_RETAINED": "100"}
    with RunningStack(tmp_path, "local", **settings) as stack:
        stack.script("up.sh")
        stack.wait_for_checkpoints(1)
        stack.script("flink_cancel.sh")
        # Not submitted: a job without state would write again what the first one wrote.
        stack.script("flink_restore.sh", "latest", *SLOW)
        stack.script("generator_stop.sh")
        stack.script("generator_start.sh", *TRAFFIC)
        wait_for_overtaken(stack)
        # The newest one when the job has ended, which is the one to restore.
        stack.script("flink_cancel.sh")
        newest = stack.newest_checkpoint()
        assert holds_records(stack, newest)

        # Visits that wait in the checkpoint are not lost, and not done either.
        stack.script("generator_stop.sh")
        commit_the_end(stack)
        code, verdict = stack.verdict("flink", "--wait", "0")
        assert (code, verdict["outcome"], verdict["lost"]) == (2, "unknown", 0)
        assert OVERTAKEN in verdict["reason"]

        wider = {"FLINK_PARALLELISM": "4"}
        refused = stack.script("flink_restore.sh", newest.name, *SLOW, check=False, settings=wider)
        assert refused.returncode != 0
        assert "cannot be restored with this parallelism" in refused.stderr
        assert "STACK_FLINK_PARALLELISM=2" in refused.stderr
        assert "Traceback" not in refused.stderr

        stack.script("flink_restore.sh", newest.name, *SLOW)
        assert stack.wait_for_checkpoints(1)["restored_from"].endswith(newest.name)
        stack.script("settle.sh", "--wait", "900")
        code, verdict = stack.verdict("flink")
    assert (code, verdict["outcome"], verdict["lost"], verdict["duplicated"]) == (0, "holds", 0, 0)
    assert verdict["observed"] > 0
