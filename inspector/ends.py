"""The topics' ends now, and the distance of a restart to them."""

from __future__ import annotations

from inspector.errors import InspectorError
from inspector.model import Lag, Partition, Report

TIMEOUT_SECONDS = 3.0


def partitions_of(report: Report) -> list[Partition]:
    """Partitions with the position from which unread records count: the end of a re-run, else where it goes on."""
    return report.restart.partitions if report.restart else []


def add_lag(report: Report, bootstrap: str) -> None:
    """Ask the broker for the end of every partition of the restart and write the lag into the report.

    Raises InspectorError when the broker does not answer or lacks the topic.
    """
    wanted = [(each, each.start if each.end is None else each.end) for each in partitions_of(report)]
    if not wanted:
        return
    # Loading the client costs more than reading a checkpoint.
    from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # Nothing is consumed or committed: asking for offsets only needs some group name.
            "group.id": "inspector",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        for partition, position in wanted:
            first, end = consumer.get_watermark_offsets(
                TopicPartition(partition.topic, partition.partition), timeout=TIMEOUT_SECONDS, cached=False
            )
            start = {-2: first, -1: end}.get(position or 0, position)
            if start is None or start < 0:
                continue
            if start > end:
                report.problems.append(
                    f"{partition.topic} partition {partition.partition} ends at {end}, before offset {start} of the"
                    " checkpoint: the topic was made anew; records would be skipped or the restart fail"
                )
            elif start < first:
                report.problems.append(
                    f"{partition.topic} partition {partition.partition} begins at {first}, after offset {start} of"
                    f" the checkpoint: retention deleted {first - start} records that were not read"
                )
            report.lag.append(Lag(partition.topic, partition.partition, start, end))
    except KafkaException as error:
        raise InspectorError(
            f"no lag: the broker at {bootstrap} gave no ends ({error.args[0].str()});"
            " start it, or name another by --bootstrap"
        ) from None
    finally:
        consumer.close()
