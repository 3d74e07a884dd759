"""Make one broker the leader of all partitions of the visits and of the windows.

Usage: python -m faultline.services.kafka.lead BROKER

BROKER is a service: kafka, kafka-2 or kafka-3. It becomes the first of the replicas, and is elected. Exit codes: 0 it
leads them, 2 it does not.
"""

from __future__ import annotations

import argparse
from typing import Any

from kafka import TopicPartition
from kafka.errors import KafkaError

from faultline.command import run
from faultline.copies import name_of
from faultline.services.kafka.topics import TopicError, connect
from faultline.settings import Settings
from faultline.waiting import attempts

_SECONDS = 30.0
_PREFERRED = 0
"""The kind of an election that takes the first of the replicas; Kafka's protocol has this number."""


def lead(admin: Any, broker: int, others: list[int], topics: list[str], seconds: float) -> None:
    """Make it the leader. Raises KafkaError, and TopicError when it does not lead in time."""
    partitions = [
        TopicPartition(topic["name"], each["partition_index"])
        for topic in admin.describe_topics(topics)
        for each in topic["partitions"]
    ]
    # The same brokers in another order: no data moves.
    refused = admin.alter_partition_reassignments({each: [broker, *others] for each in partitions})
    if wrong := [f"{each.topic}-{each.partition}: {error.__name__}" for each, error in refused.items() if error]:
        raise TopicError(f"the replicas cannot be ordered: {', '.join(wrong)}")
    for _ in attempts(seconds, 0.5):
        admin.elect_leaders(_PREFERRED, {name: _of(partitions, name) for name in topics}, raise_errors=False)
        leaders = {each["leader_id"] for topic in admin.describe_topics(topics) for each in topic["partitions"]}
        if leaders == {broker}:
            return
    raise TopicError(f"broker {broker} does not lead within {seconds:.0f} s; scripts/status.sh shows which one runs")


def _of(partitions: list[TopicPartition], topic: str) -> list[int]:
    return [each.partition for each in partitions if each.topic == topic]


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lead", description="Make one broker the leader.", allow_abbrev=False)
    parser.add_argument("broker", metavar="BROKER")
    chosen = parser.parse_args()
    try:
        settings = Settings()
        numbers = {name_of("kafka", broker): broker for broker in settings.brokers}
        if chosen.broker not in numbers:
            raise TopicError(f"there is no broker '{chosen.broker}'; the brokers are: {', '.join(numbers)}")
        broker = numbers[chosen.broker]
        others = [each for each in settings.brokers if each != broker]
        admin = connect(settings.bootstrap, settings.replicas, _SECONDS)
        try:
            topics = [settings.text("VISITS_TOPIC"), settings.text("VISIT_WINDOWS_TOPIC")]
            lead(admin, broker, others, topics, _SECONDS)
        finally:
            admin.close()
    except KafkaError as error:
        raise TopicError(str(error) or type(error).__name__) from None
    return 0


if __name__ == "__main__":
    run("lead", main)
