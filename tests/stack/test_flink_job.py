"""The windowing job on a separate cluster: its counts, outputs and state, through kills and restores."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from faultline.formats.visit import iso_time
from flink_job.rest import call, checkpoints
from tests.stack.flink_accounts import account, late_by_rule, late_of, read_all
from tests.stack.flink_cluster import (
    BOUND_SECONDS,
    START,
    WINDOW_SECONDS,
    Cluster,
    newest_checkpoint,
    producing,
    send,
)
from tests.stack.flink_corpus import corpus

# Everything in the corpus is on time, whatever its century; the last visits close all windows but their own.
CENTURIES_SECONDS = 7_000_000_000
FAR_AHEAD = "9998-01-01T00:00:00Z"
# A reader that a busy machine holds up for seconds must not make its partition idle: the rule knows no idle partition.
NEVER_IDLE = {"STACK_FLINK_IDLE_PARTITION_SECONDS": "3600"}


@pytest.mark.parametrize(
    "cluster", [NEVER_IDLE | {"STACK_FLINK_OUT_OF_ORDERNESS_SECONDS": str(CENTURIES_SECONDS)}], indirect=True
)
def test_the_job_and_the_rule_agree_on_every_value(cluster: Cluster) -> None:
    # Idempotent: a retry must not put a visit behind the closing one, where it is late.
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(corpus()):
        key = (None, b"", b"key")[number % 3]
        producer.produce(cluster.topics.visits, value, key, partition=number % 2, timestamp=START + number)
    for partition in (0, 1):
        closing = json.dumps({"visit_id": "closing", "event_time": FAR_AHEAD})
        producer.produce(cluster.topics.visits, closing, partition=partition, timestamp=START)
    producer.flush()
    cluster.drain(cluster.submit())
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, CENTURIES_SECONDS, cluster.topics)
    assert result.wrong == []
    assert (result.late, result.pending) == (0, 2)
    assert result.in_windows > 500 and result.rejected > 1500


@pytest.mark.full
@pytest.mark.parametrize("cluster", [NEVER_IDLE], indirect=True)
def test_nothing_is_lost_or_twice_after_a_kill_and_a_restore(cluster: Cluster) -> None:
    with producing(cluster) as wait:
        job = cluster.submit()
        refused = cluster.module("flink_job.submit")
        assert refused.returncode == 2 and job in refused.stderr and len(refused.stderr.splitlines()) == 1
        cluster.wait("the third checkpoint", lambda: checkpoints(cluster.rest, job)["counts"]["completed"] >= 3)
        cluster.kill("taskmanager")
        cluster.start("taskmanager")
        restored = lambda: checkpoints(cluster.rest, job)["latest"]["restored"]  # noqa: E731
        cluster.wait("a restart from a checkpoint", restored)
        completed = checkpoints(cluster.rest, job)["counts"]["completed"]
        cluster.wait("the next one", lambda: checkpoints(cluster.rest, job)["counts"]["completed"] > completed + 1)
        assert cluster.module("flink_job.cancel").returncode == 0
        wait(3)
        job = cluster.submit("--from", newest_checkpoint(cluster, job))
        wait(4)
    cluster.drain(job)
    # The JobManager asks for metrics every ten seconds.
    cluster.wait("the window operator's metrics", lambda: cluster.dropped(job))
    assert cluster.dropped(job) == ["0"]
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, cluster.topics)
    assert result.wrong == []
    assert min(result.in_windows, result.late, result.rejected, result.pending) > 0
    assert_late_by_the_rule(cluster)


def assert_late_by_the_rule(cluster: Cluster) -> None:
    """Check that the topic alone decides which visits are late, whatever was killed, restored or rescaled."""
    expected = late_by_rule(cluster.broker.bootstrap, cluster.topics.visits, WINDOW_SECONDS, BOUND_SECONDS)
    assert late_of(cluster.broker.bootstrap, cluster.topics) == expected


@pytest.mark.full
@pytest.mark.parametrize("parallelisms", [(2,), (1, 2, 4, 1)])
@pytest.mark.parametrize("cluster", [NEVER_IDLE | {"partitions": "4"}], indirect=True)
def test_nothing_is_lost_or_twice_at_any_parallelism(cluster: Cluster, parallelisms: tuple[int, ...]) -> None:
    origin: list[str] = []
    with producing(cluster, partitions=4) as wait:
        for parallelism in parallelisms:
            cluster.environment["STACK_FLINK_PARALLELISM"] = str(parallelism)
            job = cluster.submit(*origin)
            cluster.wait("two checkpoints", lambda job=job: checkpoints(cluster.rest, job)["counts"]["completed"] >= 2)
            if parallelism > 1:
                cluster.kill("taskmanager")
                cluster.start("taskmanager")
                restored = lambda job=job: checkpoints(cluster.rest, job)["latest"]["restored"]  # noqa: E731
                cluster.wait("a restart from a checkpoint", restored)
                done = checkpoints(cluster.rest, job)["counts"]["completed"]
                more = lambda job=job, done=done: checkpoints(cluster.rest, job)["counts"]["completed"] > done  # noqa: E731
                cluster.wait("the next one", more)
            tasks = {vertex["name"]: vertex["parallelism"] for vertex in call(cluster.rest, f"/jobs/{job}")["vertices"]}
            assert set(tasks.values()) == {parallelism}, tasks
            assert cluster.module("flink_job.cancel").returncode == 0
            origin = ["--from", newest_checkpoint(cluster, job)]
        cluster.environment["STACK_FLINK_PARALLELISM"] = "4"
        job = cluster.submit(*origin)
        wait(3)
    cluster.drain(job)
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, cluster.topics)
    assert result.wrong == []
    assert min(result.in_windows, result.late, result.rejected, result.pending) > 0
    assert_late_by_the_rule(cluster)


@pytest.mark.full
@pytest.mark.parametrize(
    "cluster",
    [{"STACK_FLINK_PARALLELISM": "2", "partitions": "3"}, {}, {"STACK_FLINK_PARALLELISM": "2"}],
    indirect=True,
)
def test_visits_of_an_idle_partition_are_late_also_after_a_restore(cluster: Cluster) -> None:
    # Partition 0 goes on alone; once partition 1 is idle, windows close without it. A third partition is empty.
    send(cluster, 1, range(20))
    send(cluster, 0, range(20))
    job = cluster.submit()
    second = 20
    windows = lambda: read_all(cluster.broker.bootstrap, cluster.topics.windows)  # noqa: E731

    def closed_alone() -> bool:
        nonlocal second
        send(cluster, 0, [second])
        second += 1
        return any(json.loads(value)["window_start"] == iso_time(START + 20_000) for _, _, value, *_ in windows())

    cluster.wait("a window that only partition 0 has reached", closed_alone)
    assert cluster.module("flink_job.cancel").returncode == 0
    # Back again: these windows are closed, and the restored job has no watermark yet.
    send(cluster, 1, range(10, 25), "back")
    job = cluster.submit("--from", newest_checkpoint(cluster, job))
    cluster.drain(job)
    # All partitions go on, so that everything before is closed.
    for partition in cluster.partitions:
        send(cluster, partition, [second + 100])
    cluster.drain(job)
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, cluster.topics)
    assert result.wrong == []
    late = {where for where in late_of(cluster.broker.bootstrap, cluster.topics) if where[0] == 1}
    assert {offset for _, offset in late} == set(range(20, 35))


@pytest.mark.full
@pytest.mark.parametrize("cluster", [NEVER_IDLE], indirect=True)
def test_a_new_partition_goes_on_with_the_clock_that_it_shared(cluster: Cluster) -> None:
    for partition in cluster.partitions:
        send(cluster, partition, range(60))
    job = cluster.submit()
    cluster.drain(job)
    assert cluster.module("flink_job.cancel").returncode == 0
    cluster.grow(3)
    # Windows up to here are closed: such a visit is late, and must not be dropped without a trace.
    send(cluster, 2, [10])
    job = cluster.submit("--from", newest_checkpoint(cluster, job))
    cluster.drain(job)
    for partition in cluster.partitions:
        send(cluster, partition, [100])
    cluster.drain(job)
    result = account(cluster.broker.bootstrap, WINDOW_SECONDS, BOUND_SECONDS, cluster.topics)
    assert result.wrong == []
    assert late_of(cluster.broker.bootstrap, cluster.topics) == {(2, 0)}


@pytest.mark.full
@pytest.mark.parametrize("cluster", [{"STACK_FLINK_IDLE_PARTITION_SECONDS": "3"}], indirect=True)
def test_a_paused_taskmanager_makes_no_partition_idle(cluster: Cluster) -> None:
    # Partition 1 is a minute of event time behind. If it counted as idle after the pause, its visits would be late.
    # Before the first visit, so that no backlog has to be read.
    job = cluster.submit()
    with producing(cluster, behind_ms=60_000) as wait:
        cluster.wait("two checkpoints", lambda: checkpoints(cluster.rest, job)["counts"]["completed"] >= 2)
        # Longer than a partition may be without visits, shorter than the heartbeat's timeout.
        cluster.pause("taskmanager", seconds=4)
        wait(5)
    cluster.drain(job)
    assert checkpoints(cluster.rest, job)["latest"]["restored"] is None
    assert_late_by_the_rule(cluster)
