"""The topics' ends now, and the distance of a restart to them."""

from __future__ import annotations

import logging
import time

from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Lag, Partition, Report
from faultline.ports import silence

TIMEOUT_SECONDS = 15

COUNTED = 5_000
"""Offsets of a partition up to which its records are counted: more would take longer than the rest of the report."""
_STALL_SECONDS = 5.0
"""Seconds that the broker may give no record while records are counted."""

Ends = dict[tuple[str, int], tuple[int, int]]
"""(topic, partition) -> first offset that is still there, and the end."""


def partitions_of(report: Report) -> list[Partition]:
    """Partitions with the position from which unread records count: the end of a re-run, else where it goes on."""
    return report.restart.partitions if report.restart else []


def add_lag(report: Report, bootstrap: str) -> None:
    """Ask the broker for the ends of every partition of the restart and write the lag into the report.

    Raises InspectorError when the broker does not answer or lacks the topic.
    """
    wanted = partitions_of(report)
    if wanted:
        _await_port(bootstrap)
        set_against(report, _ask(wanted, bootstrap))
        _leave_out_empty(report.lag, bootstrap)


def _await_port(bootstrap: str) -> None:
    """Fail fast if the port is closed: Kafka's clients wait for their whole time-out when nothing listens."""
    reasons = []
    for address in bootstrap.split(","):
        host, separator, port = address.strip().rpartition(":")
        if not separator or not port.isdecimal():
            raise InspectorError(f"no lag: the broker's address {address!r} is not of the form HOST:PORT")
        reason = silence(host.strip("[]"), int(port))
        if not reason:
            return
        reasons.append(reason)
    raise no_ends(bootstrap, ", ".join(dict.fromkeys(reasons)))


def set_against(report: Report, ends: Ends) -> None:
    """Write the distance to the ends into the report; a position outside of the topic is a problem."""
    for partition in partitions_of(report):
        first, end = ends[(partition.topic, partition.partition)]
        position = partition.start if partition.end is None else partition.end
        start = {-2: first, -1: end}.get(position or 0, position)
        if start is None or start < 0:
            continue
        name = f"{partition.topic} partition {partition.partition}"
        if start > end:
            report.problems.append(
                f"{name} ends at {end}, before offset {start} of the checkpoint: the topic was created again;"
                " records would be skipped or the restart fail"
            )
        elif start < first:
            report.problems.append(
                f"{name} begins at {first}, after offset {start} of the checkpoint:"
                f" retention deleted {first - start} records that were not read"
            )
        report.lag.append(Lag(partition.topic, partition.partition, start, end))


def no_ends(bootstrap: str, why: str) -> InspectorError:
    """Say that there is no lag, and why."""
    return InspectorError(
        f"no lag: the broker at {bootstrap} gave no ends ({why}); start it, or name another by --bootstrap"
    )


def _ask(wanted: list[Partition], bootstrap: str) -> Ends:
    # Loading the client costs more than reading a checkpoint.
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415
    from kafka.errors import KafkaError  # noqa: PLC0415

    # It would log each lost connection; our one line is enough.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        # Nothing is consumed or committed, so there is no group.
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap.split(","), enable_auto_commit=False, request_timeout_ms=TIMEOUT_SECONDS * 1000
        )
        try:
            for each in wanted:
                # Asking for one that does not exist would wait for the whole time-out.
                if each.partition not in (consumer.partitions_for_topic(each.topic) or ()):
                    raise no_ends(bootstrap, f"{each.topic} partition {each.partition} does not exist")
            partitions = {(each.topic, each.partition): TopicPartition(each.topic, each.partition) for each in wanted}
            first = consumer.beginning_offsets(list(partitions.values()))
            last = consumer.end_offsets(list(partitions.values()))
        finally:
            consumer.close()
    except KafkaError as error:
        raise no_ends(bootstrap, str(error)) from None
    return {name: (first[partition], last[partition]) for name, partition in partitions.items()}


def _leave_out_empty(lags: list[Lag], bootstrap: str) -> None:
    """Count the offsets that hold no record: each end of a transaction takes one, and readers never get it."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415
    from kafka.errors import KafkaError  # noqa: PLC0415

    waiting = {
        TopicPartition(each.topic, each.partition): each for each in lags if 0 < each.end - each.position <= COUNTED
    }
    for each in lags:
        each.empty = 0 if each.end == each.position else None
    if not waiting:
        return
    found = dict.fromkeys(waiting, 0)
    try:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap.split(","), enable_auto_commit=False)
        try:
            # What retention has deleted cannot be looked at.
            begins = consumer.beginning_offsets(list(waiting))
            waiting = {each: lag for each, lag in waiting.items() if begins[each] <= lag.position}
            consumer.assign(list(waiting))
            for partition, lag in waiting.items():
                consumer.seek(partition, lag.position)
            deadline = time.monotonic() + _STALL_SECONDS
            while waiting and time.monotonic() < deadline:
                for partition, records in consumer.poll(timeout_ms=200).items():
                    found[partition] += sum(1 for record in records if record.offset < waiting[partition].end)
                    deadline = time.monotonic() + _STALL_SECONDS
                for partition in [each for each in waiting if consumer.position(each) >= waiting[each].end]:
                    lag = waiting.pop(partition)
                    lag.empty = lag.end - lag.position - found[partition]
                    consumer.pause(partition)
        finally:
            consumer.close()
    except KafkaError as error:
        raise no_ends(bootstrap, str(error)) from None
