"""Read a topic from its first record to its end, and print each record as Kafka's console consumer does.

Usage: python -m faultline.probes.read_topic TOPIC [--last N] [--fates]

A line is `Partition:0<tab>Offset:17<tab>VALUE`. Only committed records are read; with --fates all are, and each line
begins with `committed` or `uncommitted`. With --last only the last N records of each partition are printed. The console
consumer ends after a time without records, and a slow start looks the same; this reader knows where the topic ends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from faultline.kafka_errors import said
from faultline.settings import Settings, SettingsError

_ANSWER_SECONDS = 30.0


class ReadError(Exception):
    """The broker does not answer or has no such topic; the message says which."""


def read(bootstrap: str, topic: str, isolation: str) -> Iterator[Message]:
    """Yield the records of every partition to its present end. Raises ReadError."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "read_topic", "enable.auto.commit": False,
            "isolation.level": isolation, "enable.partition.eof": True, "log_level": 0,
        }
    )  # fmt: skip
    try:
        found = consumer.list_topics(topic, _ANSWER_SECONDS).topics[topic]
        if found.error is not None:
            raise ReadError(f"topic {topic} at {bootstrap}: {found.error.str()}")
        left = set(found.partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        while left:
            message = consumer.poll(_ANSWER_SECONDS)
            if message is None:
                raise ReadError(f"topic {topic} at {bootstrap} returned nothing for {_ANSWER_SECONDS:.0f} s")
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
    except KafkaException as error:
        raise ReadError(f"topic {topic} at {bootstrap} cannot be read: {said(error)}") from None
    finally:
        consumer.close()


def lines(bootstrap: str, topic: str, *, fates: bool) -> list[tuple[int, str]]:
    """Return partition and line of each record, by partition and offset. Raises ReadError."""
    messages = list(read(bootstrap, topic, "read_uncommitted" if fates else "read_committed"))
    # The committed ones afterwards: what is committed meanwhile counts as committed.
    known = {place(each) for each in read(bootstrap, topic, "read_committed")} if fates else set()
    found = []
    for each in sorted(messages, key=place):
        partition, offset = place(each)
        line = f"Partition:{partition}\tOffset:{offset}\t{(each.value() or b'').decode(errors='replace')}"
        fate = "committed" if place(each) in known else "uncommitted"
        found.append((partition, f"{fate:<11}\t{line}" if fates else line))
    return found


def place(message: Message) -> tuple[int, int]:
    """Return its partition and offset."""
    return message.partition() or 0, message.offset() or 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the records; returns the exit code: 0 printed, 2 the topic cannot be read."""
    parser = argparse.ArgumentParser(prog="scripts/consume.sh", description=__doc__, allow_abbrev=False)
    parser.add_argument("topic")
    parser.add_argument("--last", type=int, default=0, metavar="N", help="only the last N records of each partition")
    parser.add_argument("--fates", action="store_true", help="uncommitted records too, marked")
    chosen = parser.parse_args(arguments)
    try:
        found = lines(Settings().bootstrap, chosen.topic, fates=chosen.fates)
    except (ReadError, SettingsError) as error:
        sys.stderr.write(f"read_topic: {error}\n")
        return 2
    for _, group in groupby(found, key=lambda each: each[0]):
        for _, line in list(group)[-chosen.last :]:
            print(line)
    return 0


if __name__ == "__main__":
    run("consume.sh", main)
