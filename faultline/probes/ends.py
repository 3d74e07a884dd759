"""The end of each partition of the visits, as far as its leader answers: up to there all replicas in sync have it.

Usage: python -m faultline.probes.ends

Prints one line of JSON, by the number of the partition: its high watermark, or null when no leader answers. Exit codes:
0 done, 2 no broker answers.
"""

from __future__ import annotations

import json

from confluent_kafka import Consumer, KafkaException, TopicPartition

from faultline.command import CommandError, run
from faultline.kafka_errors import said
from faultline.settings import Settings
from faultline.topic_reader import reader

_ANSWER_SECONDS = 3.0


def ends(settings: Settings) -> dict[int, int | None]:
    """Ask for each partition. Raises KafkaException when no broker answers."""
    consumer = reader(settings.bootstrap, committed=False)
    topic = settings.text("VISITS_TOPIC")
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions)
        return {partition: _end(consumer, TopicPartition(topic, partition)) for partition in partitions}
    finally:
        consumer.close()


def _end(consumer: Consumer, partition: TopicPartition) -> int | None:
    try:
        found = consumer.get_watermark_offsets(partition, timeout=_ANSWER_SECONDS)
    except KafkaException:
        return None
    return None if found is None else int(found[1])


def main() -> int:
    """Print the ends; returns the exit code. Raises CommandError when no broker answers."""
    try:
        print(json.dumps(ends(Settings())))
    except KafkaException as error:
        raise CommandError(said(error)) from None
    return 0


if __name__ == "__main__":
    run("ends", main)
