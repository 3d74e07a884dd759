"""The damages: what is done to a checkpoint, an output or a topic while the query is down."""

from __future__ import annotations

import os
from collections.abc import Callable

from confluent_kafka.cimpl import NewPartitions, TopicPartition

from faultline.waiting import wait_until
from labs.delete_x_then_start.case import Bench

_SECONDS = 30


def nothing(_bench: Bench) -> None:
    """Stop and start, for comparison."""


def delete(*names: str) -> Callable[[Bench], None]:
    """Delete files or folders of the checkpoint; of a file, the checksum beside it too."""

    def cut(bench: Bench) -> None:
        for name in names:
            bench.folder.delete_logged(bench.checkpoint / name)

    return cut


def cut_off(name: str, size: int) -> Callable[[Bench], None]:
    """Cut the last `size` bytes off a file of the checkpoint, as a full disk does."""

    def cut(bench: Bench) -> None:
        path = bench.checkpoint / name
        os.truncate(path, path.stat().st_size - size)

    return cut


def empty(name: str) -> Callable[[Bench], None]:
    """Leave nothing in a file of the checkpoint."""

    def cut(bench: Bench) -> None:
        os.truncate(bench.checkpoint / name, 0)

    return cut


def delete_output(bench: Bench) -> None:
    """Delete the output folder, the sink's log in it too."""
    bench.folder.delete(bench.pipeline.output)


def create_again(rows: int) -> Callable[[Bench], None]:
    """Delete the topic and create it again under its name, then send `rows`."""

    def cut(bench: Bench) -> None:
        topic = bench.topic
        bench.broker.delete_topic(topic.topic)
        bench.broker.create_topic(topic.topic, topic.partitions)
        topic.send(rows)

    return cut


def delete_topic(bench: Bench) -> None:
    """Delete the topic."""
    bench.broker.delete_topic(bench.topic.topic)


def add_partitions(count: int) -> Callable[[Bench], None]:
    """Add partitions up to `count`; later rows go to all of them."""

    def cut(bench: Bench) -> None:
        topic, admin = bench.topic, bench.broker.admin
        for future in admin.create_partitions([NewPartitions(topic.topic, count)]).values():
            future.result(timeout=_SECONDS)
        wait_until(
            lambda: len(admin.list_topics(topic.topic, timeout=_SECONDS).topics[topic.topic].partitions) >= count,
            f"{count} partitions (log: {bench.broker.log})",
            seconds=_SECONDS,
        )
        topic.partitions = count

    return cut


def age_out(arrived: int, retained: int) -> Callable[[Bench], None]:
    """Send `arrived` rows, then let the broker delete all but the last `retained`, as retention does.

    By the DeleteRecords request, which moves the partitions' first offset as retention would, and at once.
    """

    def cut(bench: Bench) -> None:
        topic = bench.topic
        topic.send(arrived)
        first = (topic.sent.total() - retained) // topic.partitions
        bounds = [TopicPartition(topic.topic, number, first) for number in range(topic.partitions)]
        for future in bench.broker.admin.delete_records(bounds).values():
            future.result(timeout=_SECONDS)

    return cut
